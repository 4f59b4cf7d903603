import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { Notes } from '../../../lib/broker/notes.js';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import { Results } from '../../../lib/results/results.js';
import { followTask, type TaskUpdate } from '../../../lib/results/updates.js';
import { archival, completion, retrial } from '../../contract/driver.js';
import { request } from '../../support/messages.js';
import { manualClock, turn } from '../../support/server-rig.js';

const AT = new Date(5);
const line = (text: string): [number, string] => [AT.getTime(), text];

async function arrange() {
  const clock = manualClock();
  const broker = new MemoryBroker(clock);
  const results = new Results(broker);
  onTestFinished(() => results.close());
  await broker.producer.enqueue('default', [request({ id: 'a', maxRetry: 3 })]);
  const take = async (): Promise<LeasedTask> => {
    await broker.maintenance.forward('default');
    return (await broker.consumer.exchange('default', { settle: [], take: 1 })).tasks[0]!;
  };
  const say = ({ lease }: LeasedTask, notes: Partial<Notes>) =>
    broker.notes.write(lease, { progress: undefined, fresh: false, pieces: [], ...notes });
  const settle = (settlement: Parameters<typeof broker.consumer.exchange>[1]['settle'][number]) =>
    broker.consumer.exchange('default', { settle: [settlement], take: 0 });
  const follow = (id = 'a') => {
    const updates: [string, ...unknown[]][] = [];
    const ends: unknown[] = [];
    const stop = followTask(
      results,
      broker.notes,
      { queue: 'default', id, known: true, kept: true },
      { timeout: 60_000, signal: undefined },
      {
        next: ({ type, data }: TaskUpdate) => void updates.push([type, ...Object.values(data as object)]),
        error: (error) => void ends.push((error as { code: string }).code),
        complete: () => void ends.push('complete'),
      },
    );
    return { updates, ends, stop };
  };
  return { clock, broker, results, take, say, settle, follow };
}

const log = (...texts: string[]) => ({
  kind: 'log' as const,
  count: texts.length,
  text: JSON.stringify(texts.map(line)),
  leftOut: 0,
});
const chunk = (...chunks: unknown[]) => ({
  kind: 'chunk' as const,
  count: chunks.length,
  text: JSON.stringify(chunks),
  leftOut: 0,
});

describe('a task that is followed', () => {
  it('tells its state, what its handler says, and its result', async () => {
    const { clock, take, say, settle, follow } = await arrange();
    const { updates, ends } = follow();
    await turn();
    const task = await take();
    await turn();
    await say(task, { progress: '[5,0.5,"half"]', fresh: true, pieces: [log('one'), chunk({ token: 'x' })] });
    await turn();
    await say(task, { pieces: [log('two', 'three'), chunk('y', null)] });
    await say(task, { progress: '[5,1]' });
    await settle(completion(task, clock.now() / 1000 + 60, Buffer.from('{"a":1}')));
    await turn();
    expect(updates).toEqual([
      ['state', 'pending'],
      ['state', 'active'],
      ['log', AT, 'one'],
      ['chunk', { token: 'x' }],
      ['progress', 0.5, 'half', AT],
      ['log', AT, 'two'],
      ['log', AT, 'three'],
      ['chunk', 'y'],
      ['chunk', null],
      ['progress', 1, AT],
      ['state', 'completed'],
      ['result', { a: 1 }],
    ]);
    expect(ends).toEqual(['complete']);
  });

  it('tells late followers what was said before, and each alike', async () => {
    const { clock, take, say, settle, follow } = await arrange();
    const task = await take();
    await say(task, { progress: '[5,0.1]', pieces: [{ ...log('late'), leftOut: 3 }] });
    const first = follow();
    await turn();
    expect(first.updates).toEqual([
      ['state', 'active'],
      ['gap', 'log'],
      ['log', AT, 'late'],
      ['progress', 0.1, AT],
    ]);
    await settle(completion(task, clock.now() / 1000 + 60));
    const second = follow();
    await turn();
    expect(second.updates).toEqual([
      ['gap', 'log'],
      ['log', AT, 'late'],
      ['progress', 0.1, AT],
      ['state', 'completed'],
      ['result', undefined],
    ]);
    expect(first.updates.slice(4)).toEqual(second.updates.slice(3));
  });

  it('says when chunks begin again', async () => {
    const { clock, take, say, settle, follow } = await arrange();
    const { updates } = follow();
    const task = await take();
    await say(task, { fresh: true, pieces: [chunk('a')] });
    await turn();
    await settle(retrial(task, Math.floor(clock.now() / 1000)));
    const again = await take();
    await say(again, { fresh: true, pieces: [chunk('b')] });
    await turn();
    expect(updates.filter(([type]) => type !== 'state')).toEqual([['chunk', 'a'], ['restart'], ['chunk', 'b']]);
    const late = follow();
    await turn();
    expect(late.updates).toEqual([
      ['state', 'active'],
      ['chunk', 'b'],
    ]);
  });

  it('says when it could not keep up', async () => {
    const { take, say, follow, broker } = await arrange();
    const task = await take();
    const { updates } = follow();
    await say(task, { pieces: [log('first')] });
    await turn();
    const read = vi.spyOn(broker.notes, 'pieces').mockRejectedValue(new Error('away'));
    await say(task, { pieces: [log('lost')] });
    const many = Array.from({ length: 100 }, (_, n) => String(n));
    for (let n = 0; n < 10; n++) await say(task, { pieces: [log(...many)] });
    await turn();
    read.mockRestore();
    await say(task, { pieces: [log('last')] });
    await turn();
    expect(updates.filter(([type]) => type !== 'state').slice(0, 2)).toEqual([
      ['log', AT, 'first'],
      ['gap', 'log'],
    ]);
    expect(updates.at(-1)).toEqual(['log', AT, 'last']);
  });

  it('ends with an error when it has failed, after what was said', async () => {
    const { take, say, settle, follow } = await arrange();
    const { updates, ends } = follow();
    const task = await take();
    await say(task, { pieces: [log('no paper')] });
    await settle(archival(task));
    await turn();
    expect(updates.slice(-2)).toEqual([
      ['log', AT, 'no paper'],
      ['state', 'archived'],
    ]);
    expect(ends).toEqual(['ASYNQ_TASK_FAILED']);
    const none = follow('none');
    await turn();
    expect(none.ends).toEqual(['ASYNQ_TASK_NOT_FOUND']);
  });

  it('tells nothing to one who has left', async () => {
    const { take, say, follow } = await arrange();
    const { updates, ends, stop } = follow();
    await turn();
    stop();
    await say(await take(), { pieces: [log('a')] });
    await turn();
    expect([updates, ends]).toEqual([[['state', 'pending']], []]);
  });

  it('ends after its time', async () => {
    const { clock, follow } = await arrange();
    const { ends } = follow();
    await turn();
    clock.advance(60_000);
    await turn();
    expect(ends).toEqual(['ASYNQ_RESULT_TIMEOUT']);
  });

  it('leaves out what others have written there', async () => {
    const { take, say, follow } = await arrange();
    const task = await take();
    await say(task, {
      progress: '"half"',
      pieces: [
        { ...log('x'), text: 'no JSON' },
        { ...log(), text: '[1,[2],"x"]' },
      ],
    });
    const { updates } = follow();
    await turn();
    expect(updates).toEqual([['state', 'active']]);
  });
});
