import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { AsynqServer } from 'nestjs-asynq';
import { AppModule } from './app.module.js';
import { findFiles } from './find-files.js';
import { printReport } from './print-report.js';
import { Screen } from './screen.js';
import { Survey } from './survey.js';

/** Surveys the files with one task each. Returns the exit code: 1 if a task was archived. */
async function survey(names: readonly string[]): Promise<number> {
  const screen = new Screen();
  const app = await NestFactory.createApplicationContext(AppModule, { logger: screen });
  app.enableShutdownHooks(); // Ctrl-C: claim no more tasks, wait for those that run, put the rest back
  try {
    const paths = await findFiles(names);
    console.log(`${paths.length} files, one task each, ${process.env.REDIS_URL ? 'on Redis' : 'in memory'}`);
    screen.begin(paths.length);
    const report = await app.get(Survey).run(paths, (done) => screen.advance(done));
    screen.end();
    printReport(report);
    return report.failures.length > 0 ? 1 : 0;
  } finally {
    screen.end();
    await app.close();
  }
}

/** Only runs the tasks that other processes enqueue, until Ctrl-C or SIGTERM. */
async function work(): Promise<void> {
  if (!process.env.REDIS_URL) throw new Error('a worker needs REDIS_URL: tasks in memory cannot be shared');
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  app.useLogger(['log', 'warn', 'error']); // quiet at boot only
  app.enableShutdownHooks([], { useProcessExit: true });
  app.get(AsynqServer).events.on('taskFinished', ({ task, outcome, duration }) => {
    console.log(`${task.type} ${task.id} ${outcome} in ${duration.toFixed(1)} ms`);
  });
  console.log(`process ${process.pid} waits for work; Ctrl-C ends it`);
}

/** `npm start [-- FILE|FOLDER…]`, and with REDIS_URL set also `npm start -- --worker` in other terminals. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { worker: { type: 'boolean' } } });
  if (values.worker) return work();
  process.exitCode = await survey(positionals.length > 0 ? positionals : ['.']);
}

await main().catch((error: Error) => {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
});
