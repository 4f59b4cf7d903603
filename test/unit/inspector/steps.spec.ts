import { beforeEach, describe, expect, it } from 'vitest';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import type { StepField } from '../../../lib/broker/checkpoints.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../../lib/clock.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { request } from '../../support/messages.js';

const NOW = Date.UTC(2030, 0, 1);
const at = (seconds: number): Date => new Date(NOW + seconds * 1000);

let broker: MemoryBroker;
let inspector: AsynqInspector;
let task: LeasedTask;

beforeEach(async () => {
  broker = new MemoryBroker(new ManualClock(NOW));
  inspector = new AsynqInspector(broker);
  await broker.producer.enqueue('default', [request({ id: 'a' })]);
  task = (await broker.consumer.exchange('default', { settle: [], take: 1 })).tasks[0]!;
});

const write = (name: string, head: object, result?: unknown) =>
  broker.checkpoints.write(
    task.lease,
    name,
    Buffer.from(`${JSON.stringify({ at: NOW, ...head })}\n${result === undefined ? '' : JSON.stringify(result)}`),
  );
const send = (name: string, payload: unknown) =>
  broker.checkpoints.signal('default', 'a', name, Buffer.from(JSON.stringify(payload)));
const steps = async () => (await inspector.steps('default', 'a'))!.steps;

describe('the steps of a task', () => {
  it('are undefined when it has none, or does not exist', async () => {
    expect(await inspector.steps('default', 'a')).toBeUndefined();
    expect(await inspector.steps('default', 'none')).toBeUndefined();
    expect(await inspector.steps('none', 'a')).toBeUndefined();
  });

  it('come in their order, with what they have brought', async () => {
    await write('second', { n: 1, kind: 'run', ended: NOW + 2_000 });
    await write('first', { n: 0, kind: 'run', ended: NOW + 1_000 }, { captureId: 'c-7' });
    await write('undo:first', { n: 0, kind: 'undo' });
    expect(await inspector.steps('default', 'a')).toEqual({
      steps: [
        {
          name: 'first',
          kind: 'run',
          state: 'done',
          startedAt: at(0),
          endedAt: at(1),
          result: { captureId: 'c-7' },
          resultSize: 19,
        },
        { name: 'second', kind: 'run', state: 'done', startedAt: at(0), endedAt: at(2), resultSize: 0 },
        { name: 'undo:first', kind: 'undo', state: 'running', startedAt: at(0), resultSize: 0 },
      ],
      total: 3,
      signals: [],
      undoing: undefined,
    });
  });

  it.each<[string, object, object]>([
    ['a sleep', { kind: 'sleep', until: NOW + 60_000 }, { state: 'asleep', wakeAt: at(60) }],
    ['a sleep that is over', { kind: 'sleep', until: NOW }, { state: 'done', endedAt: at(0), wakeAt: undefined }],
    [
      'a wait',
      { kind: 'wait', until: NOW + 60_000, signal: 'ok' },
      { state: 'waiting', wakeAt: at(60), signal: 'ok', endedAt: undefined },
    ],
    ['a wait of an older version', { kind: 'wait', until: NOW + 1 }, { state: 'waiting', signal: undefined }],
    [
      'a wait without its signal',
      { kind: 'wait', until: NOW - 1_000, signal: 'ok', timedOut: true },
      { state: 'failed', endedAt: at(-1), wakeAt: undefined },
    ],
    [
      'a step to be tried again',
      { kind: 'run', tries: 2, error: 'refused', until: NOW + 5_000 },
      { state: 'retrying', tries: 2, error: 'refused', wakeAt: at(5) },
    ],
    [
      'a step that has failed',
      { kind: 'run', tries: 3, error: 'refused', failed: true, ended: NOW + 1_000 },
      { state: 'failed', tries: 3, error: 'refused', endedAt: at(1) },
    ],
    [
      'a call',
      { kind: 'call', queue: 'render', id: 'b' },
      { state: 'waiting', child: { queue: 'render', id: 'b' }, wakeAt: undefined },
    ],
    ['a cursor', { kind: 'each', done: 40, cursor: 'x' }, { state: 'running', done: 40 }],
    ['a cursor at its end', { kind: 'each', done: 90, ended: NOW }, { state: 'done', done: 90 }],
    ['a kind of a later version', { kind: 'later', more: [1] }, { kind: 'later', state: 'running' }],
  ])('know %s', async (_, head, shown) => {
    await write('one', { n: 0, ...head });
    expect(await steps()).toMatchObject([{ name: 'one', startedAt: at(0), ...shown }]);
  });

  it('give each signal to one wait, in the order of both', async () => {
    for (const n of [0, 1, 2]) await write(`wait#${n + 1}`, { n, kind: 'wait', until: NOW + 60_000, signal: 'row' });
    await write('other', { n: 3, kind: 'wait', until: NOW + 60_000, signal: 'other' });
    await write('late', { n: 4, kind: 'wait', until: NOW, signal: 'late', timedOut: true });
    await send('row', { n: 1 });
    await send('row', { n: 2 });
    await send('late', 'x');
    await send('early', 'y');
    const found = (await inspector.steps('default', 'a'))!;
    expect(found.steps.map(({ state, result }) => [state, result])).toEqual([
      ['done', { n: 1 }],
      ['done', { n: 2 }],
      ['waiting', undefined],
      ['waiting', undefined],
      ['failed', undefined],
    ]);
    expect(found.signals).toEqual([
      { name: 'early', count: 1, taken: 0 },
      { name: 'late', count: 1, taken: 0 },
      { name: 'row', count: 2, taken: 2 },
    ]);
  });

  it('know signals that came before the first step', async () => {
    await send('early', 1);
    expect(await inspector.steps('default', 'a')).toEqual({
      steps: [],
      total: 0,
      signals: [{ name: 'early', count: 1, taken: 0 }],
      undoing: undefined,
    });
  });

  it('know what was undone, and why', async () => {
    for (const n of [0, 1, 2]) await write(`step${n}`, { n, kind: 'run', ended: NOW, undo: true }, n);
    await write('undo:step2', { n: 0, kind: 'undo', ended: NOW + 1_000 });
    await write('undo:step1', { n: 1, kind: 'undo', at: NOW + 1_000, failed: true, error: 'no refund' });
    await write('!undo', { error: 'no parcel', outcome: 'archive' });
    const found = (await inspector.steps('default', 'a'))!;
    expect(found.steps.map(({ name, state }) => [name, state])).toEqual([
      ['step0', 'done'],
      ['step1', 'done'],
      ['step2', 'undone'],
      ['undo:step2', 'done'],
      ['undo:step1', 'failed'],
    ]);
    expect(found).toMatchObject({ total: 5, undoing: { error: 'no parcel', over: false } });
    await write('!undo', { error: 'no parcel', outcome: 'archive', over: true, life: 1, signals: {} });
    expect(await inspector.steps('default', 'a')).toMatchObject({ total: 5, undoing: { over: true } });
  });

  it('begin anew when the task is run again after all was undone', async () => {
    await write('ask', { n: 0, kind: 'wait', signal: 'ok', until: NOW + 60_000 });
    await write('pay', { n: 1, kind: 'run', ended: NOW, undo: true }, 1);
    await write('undo:pay', { n: 1, kind: 'undo', ended: NOW });
    await send('ok', 'of the first life');
    await write('!undo', { error: 'no parcel', over: true, life: 1, signals: { ok: 1 } });
    await write('ask', { n: 0, kind: 'wait', signal: 'ok', until: NOW + 60_000, life: 1 });
    expect(await inspector.steps('default', 'a')).toMatchObject({
      steps: [{ name: 'ask', state: 'waiting' }],
      total: 1,
      signals: [],
      undoing: undefined,
    });
    await send('ok', 'of the second life');
    expect(await inspector.steps('default', 'a')).toMatchObject({
      steps: [{ name: 'ask', state: 'done', result: 'of the second life' }],
      signals: [{ name: 'ok', count: 1, taken: 1 }],
    });
    await write('!undo', { error: 'again', life: 1, signals: { ok: 1 } });
    expect(await inspector.steps('default', 'a')).toMatchObject({
      steps: [{ name: 'ask', state: 'done', result: 'of the second life' }],
      undoing: { error: 'again', over: false },
    });
    await write('!undo', { error: 'again', over: true, life: 2, signals: { ok: 2 } });
    expect(await inspector.steps('default', 'a')).toMatchObject({
      steps: [{ name: 'ask', state: 'done', result: undefined }], // nobody knows any more which signal it was
      undoing: { error: 'again', over: true },
    });
  });

  it('know how called tasks have ended, before the handler does', async () => {
    const call = { kind: 'call', queue: 'render', until: NOW + 600_000 };
    for (const [n, id] of ['good', 'bad', 'open', 'large'].entries()) await write(id, { n, id, ...call });
    await write('known', { n: 4, id: 'known', ...call, ended: NOW, failed: true, error: 'deleted' });
    await write('again', { n: 5, id: 'again', ...call });
    const answers: Readonly<Record<string, string>> = {
      good: '{"ok":true}\n{"url":"/7"}',
      bad: '{"ok":false,"why":"no paper"}\n',
      large: `{"ok":true}\n${'7'.repeat(20_000)}`,
      known: '{"ok":true}\n1',
    };
    const { checkpoints } = broker;
    const role: typeof checkpoints = Object.assign(Object.create(checkpoints) as typeof checkpoints, {
      list: async (queue: string, id: string) => ({
        ...(await checkpoints.list(queue, id)),
        answers: Object.keys(answers),
      }),
      view: async (queue: string, id: string, fields: readonly StepField[], most: number) => {
        const stored = await checkpoints.view(queue, id, fields, most);
        return fields.map((field, index) => {
          if (!('answer' in field)) return stored[index];
          const bytes = Buffer.from(answers[field.answer]!);
          const shown = bytes.length > most ? bytes.subarray(0, bytes.indexOf('\n') + 1) : bytes;
          return { bytes: shown, size: bytes.length };
        });
      },
    });
    const seen = new AsynqInspector(Object.assign(Object.create(broker) as MemoryBroker, { checkpoints: role }));
    const found = (await seen.steps('default', 'a'))!;
    expect(found.steps).toMatchObject([
      { name: 'good', state: 'done', child: { queue: 'render', id: 'good' }, result: { url: '/7' }, wakeAt: undefined },
      { name: 'bad', state: 'failed', error: 'no paper', resultSize: 0 },
      { name: 'open', state: 'waiting', wakeAt: undefined },
      { name: 'large', state: 'done', result: undefined, resultSize: 20_000 },
      { name: 'known', state: 'failed', error: 'deleted' },
      { name: 'again', state: 'waiting' },
    ]);
  });

  it('leave out records that cannot be read, and large results', async () => {
    for (const text of ['', '{', '7\n', 'null\n1']) {
      await broker.checkpoints.write(task.lease, `damaged ${text.length}`, Buffer.from(text));
    }
    await write('large', { n: 0, kind: 'run', ended: NOW }, 'x'.repeat(20_000));
    expect(await steps()).toMatchObject([{ name: 'large', state: 'done', result: undefined, resultSize: 20_002 }]);
    const whole = (await inspector.steps('default', 'a', { maxResultSize: 30_000 }))!;
    expect(whole.steps[0]!.result).toHaveLength(20_000);
  });

  it('come page by page', async () => {
    for (let n = 0; n < 25; n++) await write(`row#${n + 1}`, { n, kind: 'run', ended: NOW }, n);
    const page = (await inspector.steps('default', 'a', { size: 10, page: 3 }))!;
    expect(page.total).toBe(25);
    expect(page.steps.map(({ result }) => result)).toEqual([20, 21, 22, 23, 24]);
    expect((await inspector.steps('default', 'a', { size: 10, page: 4 }))!.steps).toEqual([]);
  });

  it.each<[object, string]>([
    [{ size: 0 }, 'size must be a whole number from 1 to 1000'],
    [{ page: 0 }, 'page must be'],
    [{ maxResultSize: -1 }, 'maxResultSize must be'],
    [{ sise: 1 }, 'did you mean "size"'],
  ])('refuse the options %j', async (options, message) => {
    await expect(inspector.steps('default', 'a', options)).rejects.toThrow(message);
  });
});
