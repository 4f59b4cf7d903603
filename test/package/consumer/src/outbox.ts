import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AsynqOutboxModule, outboxSchema, pgOutbox } from 'nestjs-asynq/outbox';
import { AppModule } from './app.js';

/** An app whose database is away: it does not start, and says why. None of the libraries for databases is installed. */
async function boot(): Promise<void> {
  const store = pgOutbox({ connect: () => Promise.reject(new Error('the database is away')) });
  class Root {}
  const imports = [AppModule.on('memory'), AsynqOutboxModule.forRoot({ store })];
  const options = { logger: false, abortOnError: false } as const;
  await NestFactory.createApplicationContext({ module: Root, imports }, options).catch((error: { code?: string }) =>
    console.log(`${error.code} ${outboxSchema('mysql').length}`),
  );
}

void boot();
