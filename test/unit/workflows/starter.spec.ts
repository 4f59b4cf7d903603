import { describe, expect, it } from 'vitest';
import type { Caused } from '../../../lib/broker/links.js';
import type { NewRun } from '../../../lib/broker/workflows.js';
import { Relay } from '../../../lib/links/relay.js';
import { Starter } from '../../../lib/workflows/starter.js';
import { step } from '../../contract/run-session.js';

const run = (id: string, steps = 1): NewRun => ({
  id,
  name: 'w',
  steps: Array.from({ length: steps }, (_, n) => step(`s${n}`)),
  retention: 1,
  deadline: undefined,
});

/** Keeps ids, and notes the ids of each call. */
class FakeWorkflows {
  readonly calls: { queue: string; ids: string[] }[] = [];
  readonly known = new Set<string>();
  failing: string | undefined;

  async start(queue: string, runs: readonly NewRun[]): Promise<Caused & { statuses: ('started' | 'exists')[] }> {
    this.calls.push({ queue, ids: runs.map(({ id }) => id) });
    if (queue === this.failing) throw new Error('no connection');
    const statuses = runs.map(({ id }) => {
      const exists = this.known.has(id);
      this.known.add(id);
      return exists ? ('exists' as const) : ('started' as const);
    });
    return { parcels: [], statuses };
  }
}

function arrange() {
  const workflows = new FakeWorkflows();
  const none = () => Promise.reject(new Error('nothing is to be carried here'));
  return {
    workflows,
    starter: new Starter(workflows, new Relay({ deliver: none, acknowledge: none, postpone: none })),
  };
}

describe('starting runs', () => {
  it('sends those of one tick together, one call per queue', async () => {
    const { workflows, starter } = arrange();
    const statuses = await Promise.all([
      starter.start('a', run('1')),
      starter.start('b', run('2')),
      starter.start('a', run('3')),
      starter.start('a', run('1')),
    ]);
    expect(statuses).toEqual(['started', 'started', 'started', 'exists']);
    expect(workflows.calls).toEqual([
      { queue: 'a', ids: ['1', '3', '1'] },
      { queue: 'b', ids: ['2'] },
    ]);
    await starter.start('a', run('4'));
    expect(workflows.calls).toHaveLength(3);
  });

  it('bounds the steps of a call; a larger run goes alone', async () => {
    const { workflows, starter } = arrange();
    const runs = [run('1', 600), run('2', 400), run('3', 1), run('4', 5000), run('5', 1)];
    await Promise.all(runs.map((one) => starter.start('a', one)));
    expect(workflows.calls.map(({ ids }) => ids)).toEqual([['1', '2'], ['3'], ['4'], ['5']]);
  });

  it('tells the error of a call to the runs in it only', async () => {
    const { workflows, starter } = arrange();
    workflows.failing = 'b';
    const results = await Promise.allSettled([starter.start('a', run('1')), starter.start('b', run('2'))]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('sends what is collected when it is closed', async () => {
    const { workflows, starter } = arrange();
    const started = starter.start('a', run('1'));
    await starter.close();
    expect(workflows.calls).toHaveLength(1);
    expect(await started).toBe('started');
  });
});
