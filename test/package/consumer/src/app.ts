import 'reflect-metadata';
import { Injectable, Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqModule, InjectTasks, type TasksOf } from 'nestjs-asynq';
import { LetterTasks, Postbox } from './tasks.js';

@Injectable()
export class Clerk {
  constructor(@InjectTasks(LetterTasks) private readonly letters: TasksOf<LetterTasks>) {}

  async post(to: string): Promise<void> {
    await this.letters.send({ to });
  }
}

@Module({})
export class AppModule {
  static on(connection: string): DynamicModule {
    return {
      module: AppModule,
      imports: [AsynqModule.forRoot({ connection, server: { concurrency: 2 } })],
      providers: [Postbox, LetterTasks, Clerk],
    };
  }
}

/** Starts the app, runs one task, stops it. The process then ends by itself, or something was left open. */
export async function sendOneLetter(connection: string): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule.on(connection), { logger: ['error', 'warn'] });
  await app.get(Clerk).post(connection.split(':')[0]!);
  const postbox = app.get(Postbox);
  await postbox.holds(1);
  await app.close();
  console.log(JSON.stringify(postbox.sent));
}
