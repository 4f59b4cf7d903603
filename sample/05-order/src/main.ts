import 'reflect-metadata';
import { setTimeout as wait } from 'node:timers/promises';
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient } from 'nestjs-asynq';
import { AppModule } from './app.module.js';
import { fulfil } from './fulfil.js';
import { Import } from './import.js';
import { say } from './say.js';

const ROWS = 20_000;

/** `npm run sample:order`: an import, then an order, until it is closed. PORT, default 3000; REDIS_URL, default: in memory. */
async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, {
    logger: new ConsoleLogger({ logLevels: ['fatal'] }), // the step that dies is printed below
    abortOnError: false,
    forceCloseConnections: true, // an open page must not delay the shutdown
  });
  app.enableShutdownHooks([], { useProcessExit: true });
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  try {
    await app.get(Import).run(ROWS);
    const order = { orderId: `order-${Date.now()}` };
    const run = await app.get(AsynqClient).start(fulfil(order), { id: order.orderId });
    say(`the workflow ${run.id} has started`);
    const { state, steps } = await run.done();
    say(`the workflow has ${state}: ${steps.invoice.error}`);
    say(`run its step "invoice" again at ${await app.getUrl()}/asynq/; Ctrl-C ends the program`);
    while ((await run.state()) === 'failed') await wait(100);
    const end = await run.done();
    say(`the workflow has ${end.state}: ${JSON.stringify(end.steps.close.result)}`);
  } finally {
    await app.close();
  }
}

await main().catch((error: Error) => {
  console.error(`${error.name}: ${error.message}`);
  process.exit(1);
});
