/* A worker as an application starts it, for redis.spec.ts: ends on SIGTERM, and prints what it does. */
import 'reflect-metadata';
import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, TaskHandler } from '../../lib/index.js'; // the sources: nothing is built here

let enabled!: () => void;
const shutdownHooks = new Promise<void>((resolve) => (enabled = resolve));
const say = (line: string): void => void process.stdout.write(`${line}\n`);

@Injectable()
class Tasks implements OnModuleDestroy {
  private release!: () => void;
  private readonly released = new Promise<void>((resolve) => (this.release = resolve));

  constructor(private readonly client: AsynqClient) {}

  @TaskHandler('slow')
  async slow() {
    await shutdownHooks; // the server starts before the application can enable them
    say('handling');
    process.once('SIGTERM', () => setTimeout(this.release, 100));
    await this.released;
    await this.client.enqueue('follow-up', undefined, { queue: 'elsewhere' });
    say('handled');
    return 'result';
  }

  onModuleDestroy() {
    say('destroyed');
  }
}

@Module({ imports: [AsynqModule.forRoot({ connection: process.env['REDIS_URL']! })], providers: [Tasks] })
class WorkerModule {}

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
app.enableShutdownHooks();
enabled();
say('ready');
