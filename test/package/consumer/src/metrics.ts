import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AsynqMetricsModule } from 'nestjs-asynq/metrics';
import { register } from 'prom-client';
import { AppModule } from './app.js';

/** The metrics of an app that has done nothing; it then ends by itself. */
async function scrape(): Promise<void> {
  const imports = [AppModule.on('memory'), AsynqMetricsModule.forRoot({})];
  class Root {}
  const app = await NestFactory.createApplicationContext({ module: Root, imports }, { logger: ['error', 'warn'] });
  const text = await register.metrics();
  await app.close();
  console.log(text.split('\n').find((line) => line.startsWith('nestjs_asynq_slots ')));
}

void scrape();
