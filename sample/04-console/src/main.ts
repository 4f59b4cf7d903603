import 'reflect-metadata';
import { provider } from './tracing.js'; // before everything that may be traced
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

/** Tasks fail here on purpose, and the console shows them. The log has only messages about the process. */
class QuietLogger extends ConsoleLogger {
  override warn(message: unknown, ...rest: unknown[]): void {
    if (!isAboutTask(message)) super.warn(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (!isAboutTask(message)) super.error(message, ...rest);
  }
}

const isAboutTask = (message: unknown): boolean => typeof message === 'string' && message.startsWith('Task ');

/** `npm run sample:console`: until Ctrl-C. PORT, default 3000; REDIS_URL, default: in memory. */
async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, {
    logger: new QuietLogger({ logLevels: ['warn', 'error', 'fatal'] }),
    abortOnError: false,
    forceCloseConnections: true, // an open page must not delay the shutdown
  });
  app.enableShutdownHooks([], { useProcessExit: true });
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  const url = await app.getUrl();
  console.log(`a shop is busy at ${url}, its tasks are ${process.env.REDIS_URL ? 'on Redis' : 'in memory'}`);
  console.log(`the console is at ${url}/asynq/; Ctrl-C ends it`);
}

await main().catch(async (error: Error) => {
  console.error(`${error.name}: ${error.message}`);
  await provider.shutdown();
  process.exit(1);
});
