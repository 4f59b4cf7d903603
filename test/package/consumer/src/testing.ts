import { Test } from '@nestjs/testing';
import { ASYNQ_BROKER, AsynqClient } from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { AppModule } from './app.js';
import { Postbox, SendLetter } from './tasks.js';

/** The example of the README: no Redis listens at this address, and none is needed. */
async function testTheApp(): Promise<void> {
  const moduleRef = await Test.createTestingModule({ imports: [AppModule.on('redis://127.0.0.1:1')] })
    .overrideProvider(ASYNQ_BROKER)
    .useClass(InMemoryBroker)
    .compile();
  const tasks = AsynqTester.from(moduleRef);
  await moduleRef.get(AsynqClient).enqueue(SendLetter, { to: 'nobody' });
  const enqueued = tasks.enqueued(SendLetter).length;
  await tasks.advance('1h');
  await moduleRef.close();
  console.log(JSON.stringify([enqueued, ...moduleRef.get(Postbox).sent]));
}

void testTheApp();
