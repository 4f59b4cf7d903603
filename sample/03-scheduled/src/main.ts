import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { AsynqScheduler } from 'nestjs-asynq';
import { AppModule } from './app.module.js';
import { Forum } from './forum.js';
import { say } from './say.js';

function printPlan(scheduler: AsynqScheduler): void {
  for (const { type, spec, tz, next } of scheduler.list()) {
    say(`${type} (${spec}, ${tz}) comes next at ${next?.toISOString()}`);
  }
}

/** `npm run sample:scheduled [-- --stay]`: a few seconds, or with --stay until Ctrl-C. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { stay: { type: 'boolean' } } });
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  app.enableShutdownHooks([], { useProcessExit: true });
  try {
    say(`tasks are ${process.env.REDIS_URL ? 'on Redis' : 'in memory'}`);
    printPlan(app.get(AsynqScheduler));
    await app.get(Forum).talk();
    say('every mention has been mailed');
    if (values.stay) return say(`process ${process.pid} goes on reporting; Ctrl-C ends it`);
  } catch (error) {
    await app.close();
    throw error;
  }
  await app.close();
}

await main().catch((error: Error) => {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
});
