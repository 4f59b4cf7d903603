import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { request } from '../support/messages.js';
import { startConsole, type TestConsole } from './console.js';

interface Shown {
  progress: { fraction: number; text: string; at: string } | null;
  log: { text: string; at: string }[];
  log_dropped: number;
  chunks: string;
  chunk_count: number;
  chunks_redacted: boolean;
}

const AT = Date.UTC(2030, 0, 1);
const AT_TEXT = '2030-01-01T00:00:00.000Z';

describe('what a handler has said, in the API', () => {
  let web: TestConsole;
  const show = (id: string) => web.get<Shown>(`queues/default/tasks/${id}`);

  beforeAll(async () => {
    web = await startConsole({
      access: 'destroy',
      redact: [{ type: 'secret:' }, { type: 'login', fields: ['token'] }],
    });
    const broker = web.broker as InMemoryBroker;
    const tasks = ['silent', 'plain', 'secret:x', 'login'].map((type) => request({ id: type, type }));
    await broker.producer.enqueue('default', tasks);
    const { tasks: claimed } = await broker.consumer.exchange('default', { settle: [], take: 9 });
    const chunks = [{ token: 'abc', n: 1 }, 'two'];
    for (const { lease } of claimed.slice(1)) {
      await broker.notes.write(lease, {
        progress: JSON.stringify([AT, 0.25, 'page 1']),
        fresh: true,
        pieces: [
          {
            kind: 'log',
            count: 2,
            text: JSON.stringify([
              [AT, 'one'],
              [AT, '<b>two</b>'],
            ]),
            leftOut: 3,
          },
          { kind: 'chunk', count: 2, text: JSON.stringify(chunks), leftOut: 0 },
        ],
      });
    }
  });
  afterAll(() => web.close());

  it('is empty when it has said nothing', async () => {
    expect(await show('silent')).toMatchObject({
      progress: null,
      log: [],
      log_dropped: 0,
      chunks: '',
      chunk_count: 0,
      chunks_redacted: false,
    });
  });

  it('has progress, log and chunks', async () => {
    expect(await show('plain')).toMatchObject({
      progress: { fraction: 0.25, text: 'page 1', at: AT_TEXT },
      log: [
        { text: 'one', at: AT_TEXT },
        { text: '<b>two</b>', at: AT_TEXT },
      ],
      log_dropped: 3,
      chunk_count: 2,
    });
  });

  it('is hidden as results and errors are', async () => {
    const secret = await show('secret:x');
    expect(secret.progress).toMatchObject({ fraction: 0.25, text: expect.stringContaining('redacted') as string });
    expect(JSON.stringify([secret.log, secret.chunks])).not.toMatch(/one|two|abc/);
    expect(secret.chunks_redacted).toBe(true);
    const login = await show('login');
    expect(login.chunks).not.toContain('abc');
    expect(login.chunks_redacted).toBe(true);
  });
});
