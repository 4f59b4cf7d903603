import { Test, type TestingModule } from '@nestjs/testing';
import { ASYNQ_BROKER, AsynqClient } from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { AppModule } from './app.js';
import { LetterTasks, Postbox, SendLetter } from './tasks.js';

describe('the testing kit in Jest', () => {
  let moduleRef: TestingModule;

  beforeEach(async () => {
    moduleRef = await Test.createTestingModule({ imports: [AppModule.on('redis://127.0.0.1:1')] })
      .overrideProvider(ASYNQ_BROKER)
      .useClass(InMemoryBroker)
      .compile();
  });
  afterEach(() => moduleRef.close());

  it('sees what was enqueued, and moves time through the retries', async () => {
    const tasks = AsynqTester.from(moduleRef);
    await moduleRef.get(AsynqClient).enqueue(SendLetter, { to: 'nobody' });
    expect(tasks.enqueued(SendLetter)).toHaveLength(1);
    expect(tasks.enqueued(LetterTasks, 'send')).toHaveLength(1);
    expect(moduleRef.get(Postbox).sent).toEqual([]);
    await tasks.advance('1h');
    expect(moduleRef.get(Postbox).sent).toEqual(['letter:send to nobody after 2 retries']);
  });
});
