/* A worker as an application starts it, for redis.spec.ts: ends on SIGTERM, and says on stdout what it does. */
import 'reflect-metadata';
import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, AsynqModule, TaskHandler } from '../../lib/index.js'; // the sources: nothing is built here

const say = (line: string): void => void process.stdout.write(`${line}\n`);

@Injectable()
class Tasks implements OnModuleDestroy {
  private release!: () => void;
  private readonly released = new Promise<void>((resolve) => (this.release = resolve));

  constructor(private readonly client: AsynqClient) {}

  @TaskHandler('slow')
  async slow() {
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
say('ready');
