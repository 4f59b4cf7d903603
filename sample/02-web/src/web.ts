import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqModule } from 'nestjs-asynq';
import { AsynqOutboxModule, kyselyOutbox } from 'nestjs-asynq/outbox';
import { DatabaseModule, SignupDatabase } from './database.js';
import { redisUrl } from './redis-url.js';
import { SignupsController } from './signups.controller.js';
import { Signups } from './signups.service.js';

/** The web process only enqueues tasks, so it has no server. Its relay brings the tasks of committed sign-ups to Redis. */
@Module({
  imports: [
    DatabaseModule,
    AsynqModule.forRoot({ connection: redisUrl, server: false }),
    AsynqOutboxModule.forRootAsync({
      inject: [SignupDatabase],
      useFactory: (db: SignupDatabase) => ({ store: kyselyOutbox(db) }),
    }),
  ],
  controllers: [SignupsController],
  providers: [Signups],
})
class WebModule {}

const app = await NestFactory.create(WebModule);
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
console.log(`listening on ${await app.getUrl()}`);
