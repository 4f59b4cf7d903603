import { afterEach, describe, expect, it } from 'vitest';
import { startConsole, type TestConsole } from '../../console.js';
import type { Shown } from '../payload-kit.js';

/* Payloads that take long to redact. */

interface Listed {
  tasks: { id: string; payload: string; payload_cut: boolean; redacted: boolean }[];
  next_cursor: string | null;
}

describe('what is redacted, made heavy', () => {
  let web: TestConsole;
  let decoded: number[];

  /** Counts the decoded bytes. */
  const counting = {
    name: 'json',
    decode(bytes: Buffer): unknown {
      decoded.push(bytes.length);
      return JSON.parse(bytes.toString());
    },
  };
  const start = async (redact: Parameters<typeof startConsole>[0] = {}): Promise<void> => {
    decoded = [];
    web = await startConsole({ access: 'view', ...redact });
  };
  afterEach(() => web.close());

  it('shows nested lists fast, however many rules lead through them', async () => {
    await start({ redact: [{ type: '', fields: ['**.token', '**.a.**.b.**.c', '**.**.pin'] }] });
    const bytes = Buffer.from(`${'['.repeat(28)}"x"${']'.repeat(28)}`);
    await web.client.enqueue('nested', bytes, { taskId: 'nested' });
    const deep = Buffer.from(`${'['.repeat(90)}{"pin":1,"x":2}${']'.repeat(90)}`);
    await web.client.enqueue('nested', deep, { taskId: 'deep' });
    expect((await web.get<Shown>('queues/default/tasks/nested')).payload).toBe(bytes.toString());
    expect((await web.get<Shown>('queues/default/tasks/deep')).payload).toContain('{"pin":"[redacted]","x":2}');
  });

  it('serves other requests while it decodes a page of slow payloads', async () => {
    await start();
    const nested = `{"token":1,"x":[${Array.from({ length: 75 }, () => '['.repeat(105) + ']'.repeat(105)).join()}]}`;
    for (let n = 0; n < 200; n++) await web.client.enqueue('slow', Buffer.from(nested));
    const order: string[] = [];
    const ask = async (path: string): Promise<void> => {
      await web.get(path);
      order.push(path);
    };
    await Promise.all([ask('queues/default/pending_tasks?size=200'), ask('config').then(() => ask('live'))]);
    expect(order).toEqual(['config', 'live', 'queues/default/pending_tasks?size=200']);
  });

  const large = (fields: object) => Buffer.from(JSON.stringify({ ...fields, filler: 'x'.repeat(50_000) }));

  it('decodes no large payload for a list, whether a rule or the default applies', async () => {
    await start({ decoders: [counting], redact: [{ type: 'user:', fields: ['pin'] }] });
    await web.client.enqueue('user:new', large({ pin: 1 }), { taskId: 'rule' });
    await web.client.enqueue('other', large({ password: 'hunter2' }), { taskId: 'name' });
    await web.client.enqueue('other', large({ a: 1 }), { taskId: 'plain' });
    const { tasks } = await web.get<Listed>('queues/default/pending_tasks');
    expect(decoded).toEqual([]);
    const shown = Object.fromEntries(tasks.map(({ id, payload }) => [id, payload]));
    expect(shown).toMatchObject({
      rule: '[too large to be shown with parts of it hidden]',
      name: '[too large to be shown with parts of it hidden]',
      plain: `{"a":1,"filler":"${'x'.repeat(183)}…`,
    });
    expect(tasks.map(({ id, redacted }) => [id, redacted])).toEqual([
      ['rule', true],
      ['name', true],
      ['plain', false],
    ]);
    // Alone, each is decoded.
    expect((await web.get<Shown>('queues/default/tasks/rule')).payload).toContain('{"pin":"[redacted]","filler":"xxx');
    expect(decoded).toHaveLength(1);
  });

  it('ends a search of large payloads early, and goes on by its cursor', async () => {
    await start({ decoders: [counting], redact: [{ type: 'user:', fields: ['pin'] }] });
    const bytes = Buffer.from(JSON.stringify({ pin: 1, filler: 'x'.repeat(40_000) }));
    for (let n = 0; n < 600; n++)
      await web.client.enqueue('user:new', bytes, { taskId: `t${String(n).padStart(3, '0')}` });
    await web.client.enqueue('user:new', Buffer.concat([bytes, Buffer.alloc(70_000, ' ')]), { taskId: 'larger' });
    const pages: number[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query = `payload=nowhere&scan=10000&cursor=${encodeURIComponent(cursor)}`;
      const page: Listed & { scanned: number } = await web.get(`queues/default/pending_tasks?${query}`);
      pages.push(page.scanned);
      cursor = page.next_cursor;
    }
    expect(pages.reduce((sum, scanned) => sum + scanned, 0)).toBe(601);
    expect(Math.max(...pages) * bytes.length).toBeLessThan(10_000_000);
    expect(decoded).toEqual(Array.from({ length: 600 }, () => bytes.length));
  });

  it('hides a payload that is too large to decode if it contains the name of a secret', async () => {
    await start();
    await web.client.enqueue('other', Buffer.from(`{"filler":"${'x'.repeat(1_000_000)}","password":"hunter2"}`), {
      taskId: 'a',
    });
    await web.client.enqueue('other', Buffer.from('password=hunter2&name=Ann'), { taskId: 'form' });
    await web.client.enqueue('other', Buffer.from('hello'), { taskId: 'hello' });
    const shown = await Promise.all(['a', 'form', 'hello'].map((id) => web.get<Shown>(`queues/default/tasks/${id}`)));
    expect(shown.map(({ payload, payload_base64 }) => [payload, payload_base64])).toEqual([
      ['[too large to be shown with parts of it hidden]', null],
      ['[redacted]', null],
      ['hello', Buffer.from('hello').toString('base64')],
    ]);
  });
});
