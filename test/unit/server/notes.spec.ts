import { afterEach, describe, expect, it } from 'vitest';
import type { Notes } from '../../../lib/broker/notes.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { BrokerUnavailableError, InvalidNoteError } from '../../../lib/errors.js';
import { TaskNotes } from '../../../lib/server/attempt/task-notes.js';
import { decodeLines, decodeProgress } from '../../../lib/task/notes.js';
import { closeRigs, gate, manualClock, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

/** Notes of an attempt, and what came of them; replies are the test's. */
function arrange({ delayed = false } = {}) {
  const clock = manualClock();
  const writes: Notes[] = [];
  let open = (): void => undefined;
  let outcome: Promise<boolean> = Promise.resolve(true);
  const hold = (): void => void (outcome = new Promise((resolve) => (open = () => resolve(true))));
  if (delayed) hold();
  const write = (_: unknown, notes: Notes): Promise<boolean> => {
    writes.push(notes);
    return outcome;
  };
  const notes = new TaskNotes({ role: { write }, clock }, { queue: 'q', id: 'a', expiresAt: 0 });
  const reply = (with_: Promise<boolean>): void => void (outcome = with_);
  return { clock, writes, notes, open: () => open(), reply };
}

const linesOf = (writes: readonly Notes[]): string[][] =>
  writes.map(({ pieces }) =>
    pieces.filter(({ kind }) => kind === 'log').flatMap(({ text }) => decodeLines(text).map((line) => line.text)),
  );

describe('what a handler says', () => {
  it('is written together, then at most five times a second, the last progress only', async () => {
    const { clock, writes, notes } = arrange();
    notes.progress(0.1);
    notes.progress(0.2, 'page 2');
    notes.log('a');
    notes.log('b');
    expect(writes).toEqual([]);
    await turn();
    expect(linesOf(writes)).toEqual([['a', 'b']]);
    expect(decodeProgress(writes[0]!.progress)).toEqual({ fraction: 0.2, text: 'page 2', at: new Date(clock.now()) });
    for (let n = 0; n < 100; n++) {
      notes.log(`${n}`);
      clock.advance(10);
      await turn(1);
    }
    expect(writes.length).toBeLessThanOrEqual(6);
    expect(writes.slice(1).every(({ progress }) => progress === undefined)).toBe(true);
    await notes.close();
    expect(linesOf(writes).flat()).toEqual(['a', 'b', ...Array.from({ length: 100 }, (_, n) => String(n))]);
  });

  it('is written one write at a time', async () => {
    const { clock, writes, notes, open } = arrange({ delayed: true });
    notes.log('a');
    await turn();
    notes.log('b');
    clock.advance(1_000);
    await turn();
    expect(writes).toHaveLength(1);
    open();
    await turn();
    clock.advance(200);
    await turn();
    expect(linesOf(writes)).toEqual([['a'], ['b']]);
  });

  it('is all written when the attempt ends, but not later than a second', async () => {
    const { clock, writes, notes, open } = arrange({ delayed: true });
    notes.log('a');
    await turn();
    notes.log('b');
    let closed = false;
    const closing = notes.close()!.then(() => (closed = true));
    await turn();
    expect(closed).toBe(false);
    clock.advance(999);
    await turn();
    expect(closed).toBe(false);
    clock.advance(1);
    await closing;
    open();
    await turn();
    expect(linesOf(writes)).toEqual([['a'], ['b']]);
    notes.log('c');
    await turn();
    expect(writes).toHaveLength(2);
    expect(arrange().notes.close()).toBeUndefined();
  });

  it('begins with the chunks of this attempt', async () => {
    const { clock, writes, notes } = arrange();
    notes.log('a');
    await turn();
    notes.emit({ token: 'x' });
    clock.advance(200);
    await turn();
    notes.emit('y');
    clock.advance(200);
    await turn();
    expect(writes.map(({ fresh }) => fresh)).toEqual([false, true, false]);
    expect(writes[1]!.pieces).toEqual([{ kind: 'chunk', count: 1, text: '[{"token":"x"}]', leftOut: 0 }]);
  });

  it('is split into pieces, and bounded while it waits', async () => {
    const { clock, writes, notes, open } = arrange({ delayed: true });
    for (let n = 0; n < 250; n++) notes.log('x');
    await turn();
    expect(writes[0]!.pieces.map(({ count }) => count)).toEqual([100, 100, 50]);
    for (let n = 0; n < 5_000; n++) notes.log(String(n));
    open();
    await turn();
    clock.advance(200);
    await turn();
    const kept = writes[1]!.pieces.reduce((sum, { count }) => sum + count, 0);
    const leftOut = writes[1]!.pieces.reduce((sum, piece) => sum + piece.leftOut, 0);
    expect(kept + leftOut).toBe(5_000);
    expect(kept).toBeLessThanOrEqual(2_000);
    expect(linesOf(writes)[1]!.at(-1)).toBe('4999');
    for (let n = 0; n < 20; n++) notes.log('y'.repeat(3_000));
    clock.advance(200);
    await turn();
    expect(Math.max(...writes[2]!.pieces.map(({ text }) => text.length))).toBeLessThan(9_000);
  });

  it('is dropped when it cannot be written, and when the lease is lost', async () => {
    const { clock, writes, notes, reply } = arrange();
    reply(Promise.reject(new BrokerUnavailableError('away')));
    notes.log('a');
    await turn();
    reply(Promise.resolve(false));
    notes.log('b');
    clock.advance(200);
    await turn();
    notes.log('c');
    clock.advance(1_000);
    await turn();
    expect(linesOf(writes)).toEqual([['a'], ['b']]);
  });

  it('is checked, cut and brought in', async () => {
    const { writes, notes } = arrange();
    const wrong: (() => void)[] = [
      () => notes.progress('1' as never),
      () => notes.progress(1, 5 as never),
      () => notes.progress(2),
      () => notes.log({} as never),
      () => notes.emit(undefined),
      () => notes.emit(1n),
      () => notes.emit('x'.repeat(65_536)),
    ];
    for (const call of wrong) expect(call).toThrow(InvalidNoteError);
    notes.progress(1.2);
    notes.progress(NaN);
    notes.log('x'.repeat(5_000));
    await turn();
    expect(decodeProgress(writes[0]!.progress)?.fraction).toBe(1);
    expect(linesOf(writes)[0]![0]).toHaveLength(4_000);
  });
});

it.each([
  [1.99, 1],
  [Infinity, 1],
  [-3, 0],
])('takes progress(%s) for %s', async (given, fraction) => {
  const { writes, notes } = arrange();
  notes.progress(given);
  await turn();
  expect(decodeProgress(writes[0]!.progress)?.fraction).toBe(fraction);
});

describe('a server', () => {
  const said = async (memory: MemoryBroker, id: string) => {
    const notes = (await memory.inspection.getTask('default', id))?.notes;
    return notes && [decodeProgress(notes.progress)?.fraction, notes.log.flatMap(decodeLines).map(({ text }) => text)];
  };

  it('stores what a handler has said before it settles the task, however it ends', async () => {
    const { server, memory, add, finished, outcomes } = await startRig(
      {
        t: async (task) => {
          task.log('begun');
          await Promise.resolve();
          task.progress(0.5);
          if (String(task.payload) === 'fail') throw new Error('no');
          if (String(task.payload) === 'hang')
            await new Promise((resolve) => task.signal.addEventListener('abort', resolve));
          task.log('done');
        },
      },
      { retryDelay: () => 3_600_000 },
    );
    const ok = await add({ type: 't', retention: 60 });
    const failed = await add({ type: 't', payload: Buffer.from('fail') });
    const late = await add({ type: 't', payload: Buffer.from('hang'), timeout: 1, maxRetry: 0 });
    await finished(3);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['archived', 'completed', 'retry']);
    expect(await said(memory, ok.id)).toEqual([0.5, ['begun', 'done']]);
    expect(await said(memory, failed.id)).toEqual([0.5, ['begun']]);
    expect(await said(memory, late.id)).toEqual([0.5, ['begun']]);
    expect(server.status).toBe('active');
  });

  it('writes nothing of handlers that say nothing', async () => {
    const { memory, add, finished } = await startRig({ t: () => 1 });
    let writes = 0;
    memory.notes.write = async () => ++writes > 0;
    await add({ type: 't' });
    await finished(1);
    expect(writes).toBe(0);
  });

  it('settles a task whose notes cannot be stored', async () => {
    const { memory, add, finished, outcomes } = await startRig({ t: (task) => task.log('x') });
    memory.notes.write = () => Promise.reject(new BrokerUnavailableError('away'));
    await add({ type: 't' });
    await finished(1);
    expect(outcomes[0]!.outcome).toBe('done');
  });

  it('keeps what a handler says from then on for itself when the attempt is over', async () => {
    const { entered, open, handle } = gate();
    const { memory, add, finished } = await startRig({ t: handle });
    const { id } = await add({ type: 't', timeout: 1, maxRetry: 0 });
    const task = await entered;
    task.log('in time');
    await finished(1);
    task.log('late');
    task.progress(1);
    open();
    await turn();
    expect(await said(memory, id)).toEqual([undefined, ['in time']]);
  });
});
