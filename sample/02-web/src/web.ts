import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqModule } from 'nestjs-asynq';
import { redisUrl } from './redis-url.js';
import { SignupsController } from './signups.controller.js';

/** The web process only enqueues tasks, so it has no server. */
@Module({
  imports: [AsynqModule.forRoot({ connection: redisUrl, server: false })],
  controllers: [SignupsController],
})
class WebModule {}

const app = await NestFactory.create(WebModule);
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
console.log(`listening on ${await app.getUrl()}`);
