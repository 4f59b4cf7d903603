import { describe, expect, it, onTestFinished } from 'vitest';
import type { RunState, RunSummary } from '../../../lib/broker/workflows.js';
import { ManualClock } from '../../../lib/clock.js';
import { EndPoller } from '../../../lib/links/end-poller.js';
import { awaitedRuns } from '../../../lib/workflows/workflows.js';
import { rejection } from '../../nest/support.js';

const NOW = 1_900_000_000_000;

/** Runs as a test wants them, and how often each was asked for. */
class FakeRuns {
  readonly states = new Map<string, RunState>();
  readonly asked: string[] = [];
  underWay = 0;
  mostUnderWay = 0;
  error: Error | undefined;

  async summary(queue: string, id: string): Promise<RunSummary | undefined> {
    this.asked.push(id);
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    await Promise.resolve();
    this.underWay--;
    if (this.error) throw this.error;
    const state = this.states.get(id);
    if (!state) return undefined;
    const counts = { steps: 1, open: state === 'running' ? 1 : 0, failed: 0, reason: undefined };
    return { queue, id, name: 'w', state, startedAt: NOW, endedAt: undefined, ...counts };
  }
}

function arrange() {
  const clock = new ManualClock(NOW);
  const runs = new FakeRuns();
  const poller = new EndPoller(awaitedRuns(runs), { clock, manual: false });
  onTestFinished(() => poller.close());
  return { clock, runs, poller };
}

/** Lets everything happen that needs no time. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

async function advance(clock: ManualClock, milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 10) {
    clock.advance(10);
    await settle();
  }
}

describe('waiting for runs', () => {
  it('resolves at once for a run that has ended', async () => {
    const { runs, poller } = arrange();
    runs.states.set('a', 'failed');
    expect((await poller.ended('q', 'a', 1000)).state).toBe('failed');
    expect(runs.asked).toEqual(['a']);
  });

  it('asks once for all who wait for a run, often at first, then once a second', async () => {
    const { clock, runs, poller } = arrange();
    runs.states.set('a', 'running');
    const waits = Array.from({ length: 100 }, () => poller.ended('q', 'a', 60_000));
    await settle();
    expect(runs.asked).toEqual(['a']);
    await advance(clock, 200);
    expect(runs.asked.length).toBeGreaterThanOrEqual(5);
    await advance(clock, 10_000);
    const before = runs.asked.length;
    await advance(clock, 5_000);
    expect(runs.asked.length - before).toBe(5);
    runs.states.set('a', 'succeeded');
    await advance(clock, 1_010);
    expect(new Set((await Promise.all(waits)).map(({ state }) => state))).toEqual(new Set(['succeeded']));
    const after = runs.asked.length;
    await advance(clock, 5_000);
    expect(runs.asked.length).toBe(after);
  });

  it('asks for many runs, 16 at a time', async () => {
    const { runs, poller } = arrange();
    const ids = Array.from({ length: 500 }, (_, n) => `r${n}`);
    for (const id of ids) runs.states.set(id, 'succeeded');
    const ended = await Promise.all(ids.map((id) => poller.ended('q', id, 1000)));
    expect(ended.map(({ id }) => id)).toEqual(ids);
    expect(runs.asked).toHaveLength(500);
    expect(runs.mostUnderWay).toBe(16);
  });

  it('rejects each at its own time, and asks no more when nobody waits', async () => {
    const { clock, runs, poller } = arrange();
    runs.states.set('a', 'running');
    const short = rejection(poller.ended('q', 'a', 999.974));
    const long = rejection(poller.ended('q', 'a', 3_000));
    await advance(clock, 1_000);
    expect(await short).toMatchObject({ code: 'ASYNQ_WORKFLOW_TIMEOUT' });
    expect((await short).message).toContain('run "a" of queue "q" has not ended within 1 s;');
    await advance(clock, 2_000);
    expect(await long).toMatchObject({ code: 'ASYNQ_WORKFLOW_TIMEOUT' });
    const before = runs.asked.length;
    await advance(clock, 10_000);
    expect(runs.asked.length).toBe(before);
  });

  it('goes on while the store does not reply; the error is the cause at the timeout', async () => {
    const { clock, runs, poller } = arrange();
    runs.states.set('a', 'running');
    runs.error = new Error('no connection');
    const lost = rejection(poller.ended('q', 'a', 500));
    const wait = poller.ended('q', 'a', 5_000);
    await advance(clock, 600);
    expect(await lost).toMatchObject({ code: 'ASYNQ_WORKFLOW_TIMEOUT', cause: runs.error });
    runs.error = undefined;
    runs.states.set('a', 'cancelled');
    await advance(clock, 1_000);
    expect((await wait).state).toBe('cancelled');
  });

  it('rejects for a run that does not exist, and all when it is closed', async () => {
    const { runs, poller } = arrange();
    expect(await rejection(poller.ended('q', 'none', 1000))).toMatchObject({ code: 'ASYNQ_WORKFLOW_NOT_FOUND' });
    runs.states.set('a', 'running');
    const wait = rejection(poller.ended('q', 'a', 1000));
    await settle();
    poller.close();
    expect(await wait).toMatchObject({ code: 'ASYNQ_CLOSED' });
    expect(await rejection(poller.ended('q', 'a', 1000))).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });
});
