import { afterEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../../lib/clock.js';
import { prepared, type PreparedTask } from '../../../lib/enqueue/prepared-task.js';
import type { TaskAggregatorEntry } from '../../../lib/server/groups/aggregators.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import { request } from '../../support/messages.js';
import { closeRigs, manualClock, openRig, type Rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

type Aggregate = TaskAggregatorEntry['aggregate'];

const task = (...parts: Parameters<typeof request>): PreparedTask => prepared(request(...parts), 0);

/** Makes a task `whole` of a group whose payload lists the ids. */
const listIds: Aggregate = async (queue, group, tasks) =>
  task({ type: 'whole', queue, payload: Buffer.from(`${group}:${tasks.map(({ id }) => id).join(',')}`) });

const entry = (aggregate: Aggregate = listIds, pattern = ''): TaskAggregatorEntry => ({
  pattern,
  read: ({ id, type, payload, headers = {} }) => {
    if (payload.toString() === 'unreadable') throw new Error('cannot read it');
    return { id, type, payload, headers };
  },
  aggregate,
});

async function setUp(
  aggregators: TaskAggregatorEntry[],
  options: ServerOptions = {},
): Promise<Rig & { clock: ManualClock }> {
  const clock = manualClock();
  const rig = await startRig({ other: () => undefined }, options, clock, aggregators);
  await turn();
  return Object.assign(rig, { clock });
}

const pass = async (clock: ManualClock, milliseconds: number): Promise<void> => {
  for (let left = milliseconds; left > 0; left -= 500) {
    clock.advance(Math.min(500, left));
    await turn(3);
  }
};

const emitted = (rig: Rig, name: string): unknown[] =>
  rig.events.filter((event) => event.name === name).map(({ event }) => event);

describe('the aggregator', () => {
  it('makes one task of a group when the grace period is over: in time, whenever it began', async () => {
    const rig = await setUp([entry()], { groupGracePeriod: '10s' });
    await pass(rig.clock, 3_300);
    await rig.add({ id: 'a', groupKey: 'g' });
    await pass(rig.clock, 2_000);
    await rig.add({ id: 'b', groupKey: 'g' });
    await pass(rig.clock, 9_500);
    expect(emitted(rig, 'groupAggregated')).toEqual([]);
    await pass(rig.clock, 500);
    expect(emitted(rig, 'groupAggregated')).toMatchObject([
      { queue: 'default', group: 'g', size: 2, task: { type: 'whole', queue: 'default' } },
    ]);
    expect(rig.memory.tasks().some(({ message }) => message.groupKey === 'g')).toBe(false);
  });

  it('aggregates a full group within a second, and never more than its maximum size', async () => {
    const rig = await setUp([entry()], { groupMaxSize: 2 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await rig.add({ id, groupKey: 'g' });
    await pass(rig.clock, 1_000);
    expect(emitted(rig, 'groupAggregated')).toMatchObject([{ size: 2 }, { size: 2 }]);
    await pass(rig.clock, 60_000);
    expect(emitted(rig, 'groupAggregated')).toMatchObject([{ size: 2 }, { size: 2 }, { size: 1 }]);
  });

  it('gives each group to the longest pattern that fits, and ignores groups without one', async () => {
    const rig = await setUp([entry(listIds, 'user:'), entry(async () => task({ type: 'vip' }), 'user:vip')], {
      groupGracePeriod: '1s',
    });
    for (const group of ['user:1', 'user:vip:2', 'order:1']) await rig.add({ id: group, groupKey: group });
    await pass(rig.clock, 2_000);
    const made = emitted(rig, 'groupAggregated').map((event) => (event as { task: { type: string } }).task.type);
    expect(made.sort()).toEqual(['vip', 'whole']);
    expect((await rig.memory.inspection.getTask('default', 'order:1'))?.state).toBe('aggregating');
  });

  it('has other periods for some queues and groups', async () => {
    const rig = await setUp([entry()], {
      queues: ['default', 'slow'],
      groupGracePeriod: '2s',
      groupOverrides: [
        { queue: 'slow', groupGracePeriod: '30s' },
        { group: 'quick', groupGracePeriod: '1s' },
      ],
    });
    const groups = [
      ['default', 'g'],
      ['slow', 'g'],
      ['slow', 'quick:1'],
    ] as const;
    for (const [queue, groupKey] of groups) await rig.add({ queue, groupKey });
    const done = (): string[] =>
      emitted(rig, 'groupAggregated').map((event) =>
        Object.values(event as object)
          .slice(0, 2)
          .join(' '),
      );
    await pass(rig.clock, 1_000);
    expect(done()).toEqual(['slow quick:1']);
    await pass(rig.clock, 1_000);
    expect(done()).toEqual(['slow quick:1', 'default g']);
    await pass(rig.clock, 28_000);
    expect(done()).toEqual(['slow quick:1', 'default g', 'slow g']);
  });

  it('reports a function that throws, and tries again when the set is back in its group', async () => {
    let calls = 0;
    const rig = await setUp(
      [
        entry(async (...args) => {
          if (++calls === 1) throw new Error('no database');
          return listIds(...args);
        }),
      ],
      { groupGracePeriod: '1s' },
    );
    await rig.add({ id: 'a', groupKey: 'g' });
    await pass(rig.clock, 1_000);
    const retryAt = new Date(rig.clock.now() + 120_000);
    expect(emitted(rig, 'aggregationFailed')).toMatchObject([
      { queue: 'default', group: 'g', size: 1, error: { message: 'no database' }, retryAt },
    ]);
    await pass(rig.clock, 119_000);
    expect(calls).toBe(1);
    await pass(rig.clock, 15_000);
    expect(emitted(rig, 'groupsReclaimed')).toEqual([{ queue: 'default', tasks: 1 }]);
    expect(emitted(rig, 'groupAggregated')).toHaveLength(1);
  });

  it('treats a function that throws synchronously like one that rejects', async () => {
    const aggregate: Aggregate = () => {
      throw new Error('no database');
    };
    const rig = await setUp([entry(aggregate)], { groupGracePeriod: '1s' });
    await rig.add({ groupKey: 'g' });
    await pass(rig.clock, 125_000); // past the deadline, when nothing else may go wrong
    expect(emitted(rig, 'aggregationFailed')[0]).toMatchObject({ error: { message: 'no database' } });
  });

  it.each([
    ['duplicate', { uniqueKey: 'lock' }, { uniqueTtl: 600 }, 'ASYNQ_DUPLICATE_TASK'],
    ['conflict', { id: 'taken' }, {}, 'ASYNQ_TASK_ID_CONFLICT'],
  ] as const)('leaves the set where the new task is a %s', async (_, message, options, code) => {
    const made = task(message, options);
    const rig = await setUp([entry(async () => made)], { groupGracePeriod: '1s' });
    rig.server.pauseFetching();
    await rig.add({ ...message }, options);
    await rig.add({ id: 'a', groupKey: 'g' });
    await pass(rig.clock, 1_000);
    expect(emitted(rig, 'aggregationFailed')).toMatchObject([{ error: { code } }]);
    expect((await rig.memory.inspection.getTask('default', 'a'))?.state).toBe('aggregating');
  });

  it('archives what cannot be decoded and aggregates the rest; a group of nothing else disappears', async () => {
    const aggregate = vi.fn(listIds);
    const rig = await setUp([entry(aggregate)], { groupGracePeriod: '1s' });
    await rig.add({ id: 'fine', groupKey: 'g' });
    await rig.add({ id: 'bad', groupKey: 'g', payload: Buffer.from('unreadable') });
    await rig.add({ id: 'worse', groupKey: 'h', payload: Buffer.from('unreadable') });
    await pass(rig.clock, 1_000);
    expect(aggregate).toHaveBeenCalledTimes(1);
    expect(emitted(rig, 'groupAggregated')).toMatchObject([{ group: 'g', size: 1 }]);
    expect(emitted(rig, 'taskDamaged')).toMatchObject([{ task: { id: 'bad' } }, { task: { id: 'worse' } }]);
    for (const id of ['bad', 'worse'])
      expect((await rig.memory.inspection.getTask('default', id))?.state).toBe('archived');
    expect(rig.memory.store('default').sets.size).toBe(0);
  });

  it('gives up a function that runs past the deadline of the set, and does not store its late result', async () => {
    let end = (_: PreparedTask): void => {};
    const rig = await setUp([entry(() => new Promise((resolve) => (end = resolve)))], { groupGracePeriod: '1s' });
    await rig.add({ id: 'a', groupKey: 'g' });
    await pass(rig.clock, 1_000);
    const late = end;
    await pass(rig.clock, 130_000);
    expect(emitted(rig, 'aggregationFailed')).toMatchObject([{ error: { code: 'ASYNQ_DEADLINE_EXCEEDED' } }]);
    late(task({ id: 'late' }));
    await turn();
    expect(await rig.memory.inspection.getTask('default', 'late')).toBeUndefined();
    expect((await rig.memory.inspection.getTask('default', 'a'))?.state).toBe('aggregating');
  });

  it('aggregates at most ten sets of a queue at once, and claims the next when one is done', async () => {
    const ends: (() => void)[] = [];
    const slow: Aggregate = (...args) => new Promise((resolve) => ends.push(() => resolve(listIds(...args))));
    const rig = await setUp([entry(slow)], { groupGracePeriod: '1s' });
    for (let n = 0; n < 12; n++) await rig.add({ groupKey: `g${n}` });
    await pass(rig.clock, 5_000);
    expect(ends).toHaveLength(10);
    ends[0]!();
    await turn();
    await pass(rig.clock, 1);
    expect(ends).toHaveLength(11);
    for (let n = 1; n < 12; n++) {
      ends[n]?.();
      await turn();
      await pass(rig.clock, 1);
    }
    expect(emitted(rig, 'groupAggregated')).toHaveLength(12);
  });

  it('waits at a shutdown for what it began, and begins nothing more', async () => {
    let end = (): void => {};
    const slow: Aggregate = (...args) => new Promise((resolve) => (end = () => resolve(listIds(...args))));
    const rig = await setUp([entry(slow)], { groupGracePeriod: '1s' });
    await rig.add({ groupKey: 'g' });
    await pass(rig.clock, 1_000);
    await rig.add({ id: 'later', groupKey: 'h' });
    const closed = vi.fn();
    const closing = rig.server.shutdown().then(closed);
    await pass(rig.clock, 3_000);
    expect(closed).not.toHaveBeenCalled();
    end();
    await turn();
    await pass(rig.clock, 1_000);
    await closing;
    expect(emitted(rig, 'groupAggregated')).toHaveLength(1);
    expect((await rig.memory.inspection.getTask('default', 'later'))?.state).toBe('aggregating');
  });

  it('reports the aggregations for which a shutdown no longer waits', async () => {
    const rig = await setUp([entry(() => new Promise(() => {}))], { groupGracePeriod: '1s', shutdownTimeout: '3s' });
    await rig.add({ groupKey: 'g' });
    await pass(rig.clock, 1_000);
    const closing = rig.server.shutdown();
    await pass(rig.clock, 4_000);
    await closing;
    expect(emitted(rig, 'shutdownTimedOut')).toEqual([{ active: 0, aggregating: 1 }]);
  });

  it('does not call the function when the deadline of the set has passed', async () => {
    const aggregate = vi.fn(listIds);
    const rig = await setUp([entry(aggregate)], { groupGracePeriod: '1s' });
    await rig.add({ id: 'a', groupKey: 'g' });
    let answer = (): void => {};
    const read = rig.memory.groups.readSet.bind(rig.memory.groups);
    vi.spyOn(rig.memory.groups, 'readSet').mockImplementationOnce(async (set) => {
      const reply = await read(set);
      return new Promise((resolve) => (answer = () => resolve(reply)));
    });
    await pass(rig.clock, 1_000);
    rig.clock.advance(120_000);
    answer();
    await turn();
    expect(emitted(rig, 'aggregationFailed')).toMatchObject([{ error: { code: 'ASYNQ_DEADLINE_EXCEEDED' } }]);
    expect(aggregate).not.toHaveBeenCalled();
  });

  it('begins nothing when Redis replies after the shutdown: the set goes back to its group', async () => {
    const aggregate = vi.fn(listIds);
    const rig = await setUp([entry(aggregate)], { groupGracePeriod: '1s' });
    await rig.add({ id: 'a', groupKey: 'g' });
    let answer = (): void => {};
    const claim = rig.memory.groups.claimDueSets.bind(rig.memory.groups);
    vi.spyOn(rig.memory.groups, 'claimDueSets').mockImplementation(async (...args) => {
      const reply = await claim(...args);
      return reply.sets.length === 0 ? reply : new Promise((resolve) => (answer = () => resolve(reply)));
    });
    await pass(rig.clock, 1_500);
    const closed = vi.fn();
    const closing = rig.server.shutdown().then(closed);
    await pass(rig.clock, 3_000);
    await closing;
    answer();
    await turn();
    expect(aggregate).not.toHaveBeenCalled();
    expect(rig.memory.store('default').sets.size).toBe(1);
  });

  it('runs in a server without handlers, which fetches nothing', async () => {
    const clock = manualClock();
    const rig = await startRig({}, { groupGracePeriod: '1s' }, clock, [entry()]);
    await rig.add({ groupKey: 'g' });
    await rig.add({ id: 'alone' });
    await pass(clock, 3_000);
    rig.server.resumeFetching();
    await pass(clock, 3_000);
    expect(emitted(rig, 'groupAggregated')).toHaveLength(1);
    expect((await rig.memory.inspection.getTask('default', 'alone'))?.state).toBe('pending');
  });

  it('polls an idle queue at most every seven seconds', async () => {
    const rig = await setUp([entry()]);
    const before = rig.calls.filter((call) => call === 'claimDueSets').length;
    await pass(rig.clock, 70_000);
    expect(rig.calls.filter((call) => call === 'claimDueSets').length - before).toBe(10);
  });

  it('goes on when Redis was away', async () => {
    const rig = await setUp([entry()], { groupGracePeriod: '1s' });
    rig.faults.set('claimDueSets', 'before');
    await rig.add({ groupKey: 'g' });
    await pass(rig.clock, 5_000);
    expect(emitted(rig, 'loopFailed')).toContainEqual(expect.objectContaining({ loop: 'aggregator' }));
    rig.faults.clear();
    await pass(rig.clock, 10_000);
    expect(emitted(rig, 'groupAggregated')).toHaveLength(1);
  });

  it('makes no task twice when the reply of the last step is lost', async () => {
    const rig = await setUp([entry()], { groupGracePeriod: '1s' });
    rig.server.pauseFetching();
    rig.faults.set('finishSet', 'after');
    await rig.add({ groupKey: 'g' });
    await pass(rig.clock, 1_000);
    rig.faults.clear();
    expect(emitted(rig, 'aggregationFailed')).toHaveLength(1);
    await pass(rig.clock, 200_000);
    expect(rig.memory.tasks().map(({ message }) => message.type)).toEqual(['whole']);
  });
});

describe('groups that are not listed', () => {
  it('are searched for when a server aggregates, at once and every ten minutes', async () => {
    const rig = await setUp([entry()]);
    await pass(rig.clock, 9_000);
    const repairs = (): number => rig.calls.filter((call) => call === 'repairGroups').length;
    expect(repairs()).toBe(1);
    vi.spyOn(rig.memory.groups, 'repairGroups').mockResolvedValue({ listed: 2, removed: 1 });
    await pass(rig.clock, 608_000);
    expect(repairs()).toBe(2);
    expect(emitted(rig, 'groupsRepaired')).toEqual([{ queue: 'default', listed: 2, removed: 1 }]);
  });
});

describe('a group that nobody aggregates', () => {
  it('is reported once per queue, some seconds after it was due', async () => {
    const rig = await setUp([], { queues: ['default', 'mail'], groupGracePeriod: '20s' });
    await rig.add({ groupKey: 'g' });
    await rig.add({ groupKey: 'h' });
    await pass(rig.clock, 25_000);
    expect(emitted(rig, 'groupNotAggregated')).toEqual([]);
    await pass(rig.clock, 10_000);
    expect(emitted(rig, 'groupNotAggregated')).toEqual([{ queue: 'default', group: 'g' }]);
    await rig.add({ queue: 'mail', groupKey: 'm' });
    await pass(rig.clock, 100_000);
    expect(emitted(rig, 'groupNotAggregated')).toEqual([
      { queue: 'default', group: 'g' },
      { queue: 'mail', group: 'm' },
    ]);
  });

  it('is reported when it is overdue by the options of that group', async () => {
    const options = { groupGracePeriod: '20s', groupOverrides: [{ group: 'slow', groupGracePeriod: '2m' }] } as const;
    const rig = await setUp([entry(listIds, 'mine')], options);
    await rig.add({ groupKey: 'slow:1' });
    await pass(rig.clock, 110_000);
    expect(emitted(rig, 'groupNotAggregated')).toEqual([]);
    await pass(rig.clock, 40_000);
    expect(emitted(rig, 'groupNotAggregated')).toEqual([{ queue: 'default', group: 'slow:1' }]);
  });

  it('is not reported while another server does, or where every group has a function', async () => {
    const rig = await setUp([], { groupGracePeriod: '20s' });
    const other = openRig({}, { groupGracePeriod: '20s' }, rig.clock, [entry()]);
    await rig.add({ groupKey: 'g' });
    for (let n = 0; n < 6; n++) {
      await pass(rig.clock, 20_000);
      await rig.memory.groups.claimDueSets('default', () => ({ gracePeriod: 20, maxDelay: 0, maxSize: 0 }), 1);
    }
    expect(emitted(rig, 'groupNotAggregated')).toEqual([]);
    await other.server.start();
    await pass(rig.clock, 60_000);
    expect(other.calls).not.toContain('listOverdueGroups');
  });
});
