import 'reflect-metadata';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule } from 'nestjs-asynq';
import { LetterTasks, Postbox, SendLetter } from './tasks.js';

@Module({})
export class AppModule {
  static on(connection: string): DynamicModule {
    return {
      module: AppModule,
      imports: [AsynqModule.forRoot({ connection, server: { concurrency: 2 } })],
      providers: [Postbox, LetterTasks],
    };
  }
}

/** Starts the app, runs one task, stops it. The process then ends by itself, or something was left open. */
export async function sendOneLetter(connection: string): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule.on(connection), { logger: ['error', 'warn'] });
  await app.get(AsynqClient).enqueue(SendLetter, { to: connection.split(':')[0]! });
  const postbox = app.get(Postbox);
  await postbox.holds(1);
  await app.close();
  console.log(JSON.stringify(postbox.sent));
}
