import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { FollowedTask, FollowingRole, FollowListener } from '../../../lib/broker/following.js';
import type { TaskPlace } from '../../../lib/broker/task-place.js';
import { ManualClock } from '../../../lib/clock.js';
import { BrokerUnavailableError, WakeUpRefusedError } from '../../../lib/errors.js';
import { Followers } from '../../../lib/results/followers.js';
import { turn } from '../../support/server-rig.js';

const task = (id: string): TaskPlace => ({ queue: 'q', id });
const PENDING: FollowedTask = { state: 'pending', result: undefined, notes: undefined };
const COMPLETED: FollowedTask = { state: 'completed', result: undefined, notes: undefined };

/** A store whose notices and failures are the test's. */
class FakeRole implements FollowingRole {
  readonly tasks = new Map<string, FollowedTask>();
  /** The ids of each read. */
  readonly armed: string[][] = [];
  readonly reads: string[][] = [];
  readonly forgotten: string[] = [];
  sources = 0;
  closed = 0;
  refusal: Error | undefined;
  failure: Error | undefined;
  listener!: FollowListener;
  /** Holds replies back. */
  gate: Promise<void> | undefined;

  async read(tasks: readonly TaskPlace[]) {
    this.reads.push(tasks.map(({ id }) => id));
    if (this.failure) throw this.failure;
    return tasks.map(({ id }) => this.tasks.get(id));
  }

  follow(listener: FollowListener) {
    this.listener = listener;
    this.sources += 1;
    return {
      arm: async (tasks: readonly TaskPlace[]) => {
        this.armed.push(tasks.map(({ id }) => id));
        if (this.refusal) throw this.refusal;
        const found = tasks.map(({ id }) => this.tasks.get(id));
        await this.gate;
        return found;
      },
      forget: ({ id }: TaskPlace) => void this.forgotten.push(id),
      close: async () => void this.closed++,
    };
  }
}

function arrange() {
  const role = new FakeRole();
  const clock = new ManualClock(0);
  const followers = new Followers(role, clock);
  onTestFinished(() => followers.close());
  const follow = (id: string, late = false) => {
    const seen: (string | undefined)[] = [];
    const closed = vi.fn();
    const stop = followers.follow(task(id), { seen: (found) => void seen.push(found?.state), closed }, late);
    return { seen, closed, stop };
  };
  return { role, clock, followers, follow };
}

describe('followers of tasks', () => {
  it('are told of the task at first, and after each notice', async () => {
    const { role, follow } = arrange();
    role.tasks.set('a', PENDING);
    const one = follow('a');
    await turn();
    role.tasks.set('a', COMPLETED);
    role.listener.onChanged(task('a'));
    await turn();
    expect(one.seen).toEqual(['pending', 'completed']);
    expect(role.reads).toEqual([]);
  });

  it('share a read: those of one tick, and those of one task', async () => {
    const { role, follow } = arrange();
    for (const id of ['a', 'b', 'a', 'c']) follow(id);
    await turn();
    expect(role.armed).toEqual([['a', 'b', 'c']]);
    for (const id of ['a', 'c']) role.listener.onChanged(task(id));
    await turn();
    expect(role.armed).toEqual([
      ['a', 'b', 'c'],
      ['a', 'c'],
    ]);
    expect(role.sources).toBe(1);
  });

  it('read again when the notice overtakes the reply', async () => {
    const { role, follow } = arrange();
    let open = (): void => undefined;
    role.gate = new Promise((resolve) => (open = resolve));
    role.tasks.set('a', PENDING);
    const { seen } = follow('a');
    await turn();
    role.tasks.set('a', COMPLETED);
    role.listener.onChanged(task('a'));
    await turn();
    expect(role.armed).toHaveLength(1);
    open();
    await turn();
    expect(seen).toEqual(['pending', 'completed']);
  });

  it('who may know otherwise read only what they still follow after a moment', async () => {
    const { role, clock, follow } = arrange();
    role.tasks.set('a', PENDING);
    const [stays, leaves] = [follow('a', true), follow('b', true)];
    clock.advance(1);
    leaves.stop();
    await turn();
    expect(role.armed).toEqual([]);
    clock.advance(1);
    await turn();
    expect(role.armed).toEqual([['a']]);
    expect(stays.seen).toEqual(['pending']);
    const another = follow('a', true); // it is read already, and may have changed since
    await turn();
    expect(role.armed).toEqual([['a'], ['a']]);
    expect(another.seen).toEqual(['pending']);
  });

  it('read at once when another wants to know at once, and no second time', async () => {
    const { role, clock, follow } = arrange();
    follow('a', true);
    follow('a');
    await turn();
    clock.advance(2);
    await turn();
    expect(role.armed).toEqual([['a']]);
  });

  it('get no reply to a read that began before they came', async () => {
    const { role, follow } = arrange();
    let open = (): void => undefined;
    role.gate = new Promise((resolve) => (open = resolve));
    const before = follow('a');
    await turn();
    role.tasks.set('a', PENDING);
    const after = follow('a');
    open();
    await turn();
    expect(before.seen).toEqual([undefined, 'pending']);
    expect(after.seen).toEqual(['pending']);
  });

  it('find within seconds what they got no notice of, and ask for nothing when nobody follows', async () => {
    const { role, clock, follow } = arrange();
    role.tasks.set('a', PENDING);
    const { seen, stop } = follow('a');
    await turn();
    role.tasks.set('a', COMPLETED);
    clock.advance(4_999);
    await turn();
    expect(seen).toEqual(['pending']);
    clock.advance(1);
    await turn();
    expect(seen).toEqual(['pending', 'completed']);
    stop();
    expect(role.forgotten).toEqual(['a']);
    clock.advance(30_000);
    await turn();
    expect(role.armed).toHaveLength(2);
  });

  it('leave the connections after a minute without followers, and open them again', async () => {
    const { role, clock, follow } = arrange();
    const first = follow('a');
    await turn();
    first.stop();
    clock.advance(59_000);
    const second = follow('b');
    await turn();
    second.stop();
    clock.advance(59_999);
    expect(role.closed).toBe(0);
    clock.advance(1);
    expect(role.closed).toBe(1);
    follow('c');
    await turn();
    expect(role.sources).toBe(2);
    clock.advance(120_000);
    expect(role.closed).toBe(1);
  });

  it('poll while notices are refused: often at first, then once a second', async () => {
    const { role, clock, follow } = arrange();
    role.refusal = new WakeUpRefusedError('no');
    role.tasks.set('a', PENDING);
    const { seen } = follow('a');
    const reads: number[] = [];
    for (let time = 0; time <= 10_000; time += 10) {
      await turn(2);
      while (reads.length < role.reads.length) reads.push(time);
      clock.advance(10);
    }
    expect(reads.slice(0, 4)).toEqual([0, 20, 50, 100]);
    expect(reads.length).toBeLessThan(25);
    expect(reads.at(-1)).toBeGreaterThan(9_000);
    role.refusal = undefined;
    role.tasks.set('a', COMPLETED);
    clock.advance(1_000);
    await turn();
    expect(seen.at(-1)).toBe('completed');
  });

  it('hear of nothing while the store is away, and remember why', async () => {
    const { role, clock, followers, follow } = arrange();
    role.refusal = role.failure = new BrokerUnavailableError('away');
    const { seen } = follow('a');
    await turn();
    expect(seen).toEqual([]);
    expect(followers.errorOf(task('a'))).toBe(role.failure);
    role.refusal = role.failure = undefined;
    clock.advance(20);
    await turn();
    expect(seen).toEqual([undefined]);
    expect(followers.errorOf(task('a'))).toBeUndefined();
  });

  it('read all again when notices were lost', async () => {
    const { role, follow } = arrange();
    for (const id of ['a', 'b']) follow(id);
    await turn();
    role.listener.onLost();
    await turn();
    expect(role.armed).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('forget a task that the last one has left while it was read', async () => {
    const { role, follow } = arrange();
    let open = (): void => undefined;
    role.gate = new Promise((resolve) => (open = resolve));
    const { stop, seen } = follow('a');
    await turn();
    stop();
    open();
    await turn();
    expect(seen).toEqual([]);
    expect(role.forgotten).toEqual(['a', 'a']);
  });

  it('are told of the end', async () => {
    const { role, followers, follow } = arrange();
    const { closed } = follow('a');
    await turn();
    await followers.close();
    expect(closed).toHaveBeenCalledOnce();
    expect(role.closed).toBe(1);
    expect(() => follow('b')).toThrow('the client was closed');
  });
});
