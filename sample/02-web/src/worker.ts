import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqModule } from 'nestjs-asynq';
import { MailHandlers } from './mail.handlers.js';
import { Mailer } from './mailer.js';
import { redisUrl } from './redis-url.js';
import { MAIL_QUEUE } from './tasks.js';

/** The worker process. You can start several. SIGTERM lets running tasks end first. */
@Module({
  imports: [AsynqModule.forRoot({ connection: redisUrl, server: { concurrency: 20, queues: [MAIL_QUEUE] } })],
  providers: [MailHandlers, Mailer],
})
class WorkerModule {}

const app = await NestFactory.createApplicationContext(WorkerModule);
app.enableShutdownHooks();
