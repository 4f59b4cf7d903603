import { Injectable } from '@nestjs/common';
import { AsynqClient, AsynqInspector, InvalidOptionError, SkipRetry, TaskHandler } from 'nestjs-asynq';
import { describe, expect, it } from 'vitest';
import { testApp } from './support.js';

@Injectable()
class Failing {
  @TaskHandler('t')
  run() {
    throw new SkipRetry('no');
  }
}

describe('queues of the module', () => {
  it('limit what archives keep, also where the inspector archives', async () => {
    const queues = { default: { archive: { maxTasks: 2 } }, low: { archive: { maxAge: '1h' } } } as const;
    const server = { queues: ['default', 'low'] };
    const { app, tasks } = await testApp({ providers: [Failing] }, { queues, server });
    const client = app.get(AsynqClient);
    for (const taskId of ['a', 'b', 'c']) {
      await client.enqueue('t', 1, { taskId });
      await tasks.drain();
      await tasks.advance('1s');
    }
    expect(tasks.archived().map(({ id }) => id)).toEqual(['b', 'c']);
    await client.enqueue('t', 1, { taskId: 'd', processIn: '1d' });
    await app.get(AsynqInspector).archiveTask('default', 'd');
    expect(tasks.archived().map(({ id }) => id)).toEqual(['c', 'd']);

    await client.enqueue('t', 1, { taskId: 'old', queue: 'low' });
    await tasks.drain();
    await tasks.advance('1h');
    await client.enqueue('t', 1, { taskId: 'new', queue: 'low' });
    await tasks.drain();
    expect(tasks.archived().map(({ id }) => id)).toEqual(['c', 'd', 'new']);
  });

  it.each([
    [5, 'queues of the module (settings by name; what a server serves is server: { queues }) must be'],
    [{ q: 5 }, 'settings of queue "q" must be'],
    [{ q: { archiv: {} } }, 'unknown setting of queue "q": "archiv"; did you mean "archive"?'],
    [
      { q: { rateLimit: { max: 1, per: '1s' } } },
      'queue "q" cannot have rateLimit here; give it in server: { queues }',
    ],
    [{ q: { archive: { max: 1 } } }, 'option of the archive of queue "q": "max"'],
    [
      { q: { archive: { maxTasks: 0 } } },
      'maxTasks of the archive of queue "q" must be a whole number of at least 1, not 0',
    ],
    [{ q: { archive: { maxTasks: 1.5 } } }, 'maxTasks of the archive of queue "q" must be a whole number'],
    [
      { q: { archive: { maxAge: 0 } } },
      'maxAge of the archive of queue "q" must be more than zero, not 0; Infinity keeps',
    ],
    [{ q: { archive: { maxAge: '1 year' } } }, 'maxAge of the archive of queue "q"'],
    [{ ' ': {} }, 'queues has a blank name'],
    [{ 'a{b}': {} }, 'queue name'],
  ])('are refused when they are %j', async (queues, message) => {
    const refused = testApp({}, { queues: queues as never });
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toBeInstanceOf(InvalidOptionError);
  });

  it('are refused among the queues of a server', async () => {
    const { app } = await testApp({ providers: [Failing] }, { server: { queues: { q: { maxPending: 1 } as never } } });
    await expect(app.init()).rejects.toThrow(
      'queue "q" cannot have maxPending here; give it in queues of the module, beside server',
    );
  });
});
