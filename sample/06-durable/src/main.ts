import 'reflect-metadata';
import { createInterface } from 'node:readline';
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AsynqClient, TaskFailedError } from 'nestjs-asynq';
import { AppModule } from './app.module.js';
import { showProgress } from './bar.js';
import { say } from './say.js';
import { Approval, FulfilOrder } from './tasks.js';

/** `npm run sample:durable`: an order that waits for your approval. ORDER, default order-1; PORT, default 3000; REDIS_URL, default: in memory. */
async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, {
    logger: new ConsoleLogger({ logLevels: ['fatal'] }), // what fails is printed below
    abortOnError: false,
    forceCloseConnections: true, // an open page must not delay the shutdown
  });
  app.enableShutdownHooks([], { useProcessExit: true });
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  const asynq = app.get(AsynqClient);
  const orderId = process.env.ORDER ?? 'order-1';
  const input = createInterface({ input: process.stdin });
  try {
    const info = await asynq.enqueue(FulfilOrder, { orderId });
    say(info.created ? `${orderId} is placed` : `${orderId} is there: its task is ${info.state}`);
    say(
      `type yes or no when you are asked, or send the signal at ${await app.getUrl()}/asynq/; Ctrl-C ends the program`,
    );
    input.on('line', (line) => {
      if (!['yes', 'no'].includes(line)) return say('yes or no?');
      const answer = { approved: line === 'yes', by: 'the terminal' };
      asynq.signal(FulfilOrder, { key: orderId }, Approval, answer).catch((error: Error) => say(error.message));
    });
    const hide = showProgress(asynq, { queue: info.queue, id: `${info.id}~thumbnail` });
    const { approvedBy } = await asynq.result(info, { timeout: '7d' });
    hide();
    say(`${orderId} is fulfilled, approved by ${approvedBy}`);
  } catch (error) {
    if (!(error instanceof TaskFailedError)) throw error;
    say(`${orderId} has failed: ${error.reason}`);
  } finally {
    input.close();
    await app.close();
  }
}

await main().catch((error: Error) => {
  console.error(`${error.name}: ${error.message}`);
  process.exit(1);
});
