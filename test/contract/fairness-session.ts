import { expect } from 'vitest';
import { LEASE_SECONDS, type LeasedTask, type Settlement } from '../../lib/broker/broker.js';
import type { FairShare } from '../../lib/wire/fairness.js';
import { fairHeader, request } from '../support/messages.js';
import { archival, completion, done, type Driver, requeueing, retrial } from './driver.js';

const DAY = 86_400;
/** A recoverer takes a task so many seconds after the end of its lease. */
const GRACE = 30;

export type Key = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'n';

/** What the keys get; `n` is none. A key with limits keeps them, so that it is known what must hold at any time. */
const SHARES: Readonly<Record<Key, Partial<FairShare> | undefined>> = {
  a: { weight: 1 },
  b: { weight: 2.5 },
  c: { concurrency: 1 },
  d: { concurrency: 3, weight: 0.5 },
  e: { rate: 2, window: 4_000 },
  f: { rate: 3, window: 2_000, concurrency: 2 },
  n: undefined,
};
export const KEYS = Object.keys(SHARES) as Key[];

const limitsOf = (key: Key): Partial<FairShare> => SHARES[key] ?? {};

export type Ending = 'done' | 'complete' | 'retry' | 'archive' | 'requeue' | 'wait';

export type FairStep =
  | { readonly do: 'enqueue'; readonly keys: readonly Key[]; readonly wait: number; readonly lost: boolean }
  | { readonly do: 'take'; readonly count: number; readonly lost: boolean }
  | {
      readonly do: 'settle';
      readonly index: number;
      readonly how: Ending;
      readonly take: number;
      readonly lost: boolean;
    }
  | { readonly do: 'move'; readonly milliseconds: number }
  | { readonly do: 'operate'; readonly index: number; readonly action: 'run' | 'archive' | 'delete' }
  | { readonly do: 'wake' }
  | { readonly do: 'fill'; readonly most: number }
  | { readonly do: 'pause' };

interface Start {
  readonly at: number;
  readonly key: Key;
}

/** Plays steps on one broker, and checks what must hold of each. */
export class FairSession {
  private calls = 0;
  /** What may still run, by id, and its key. */
  private readonly live = new Map<string, Key>();
  private readonly parked = new Map<string, Key>();
  /** Tasks that have been nowhere but in line, by key. */
  private readonly untouched = new Map<Key, string[]>();
  private active: LeasedTask[] = [];
  private readonly starts: Start[] = [];
  private paused = false;
  /** Of tasks that had their turn before they were taken, the turns keep the rate. */
  private isFilled = false;

  constructor(
    readonly driver: Driver,
    /** Lets the reply of the next call of a script that begins with this name get lost. */
    private readonly lose: (script: string) => void,
  ) {
    driver.broker.fairQueues.add('default');
  }

  async play(step: FairStep): Promise<void> {
    switch (step.do) {
      case 'enqueue':
        await this.enqueue(step);
        break;
      case 'take':
        await this.take([], step.count, step.lost);
        break;
      case 'settle':
        await this.settle(step);
        break;
      case 'move':
        await this.move(step.milliseconds);
        break;
      case 'operate':
        await this.operate(step.index, step.action);
        break;
      case 'wake':
        await this.driver.broker.limiting.wakeWaiting('default', 'hold', 3);
        break;
      case 'fill':
        this.isFilled = true;
        await this.driver.broker.maintenance.fillTurns('default', step.most);
        break;
      case 'pause':
        await this.pause(!this.paused);
        break;
    }
    await this.check();
  }

  /** Runs all that is left: nothing waits for ever, and nothing is left behind. */
  async drain(): Promise<void> {
    if (this.paused) await this.pause(false);
    for (let round = 0; round < 200 && this.live.size > 0; round++) {
      await this.move(5_000);
      await this.driver.broker.limiting.wakeWaiting('default', 'hold', 100);
      await this.take([], 100, false);
      if (this.active.length > 0) await this.take(this.active.splice(0).map(done), 100, false);
    }
    expect([...this.live]).toEqual([]);
    await this.driver.broker.maintenance.repairLines('default'); // as the janitor does: operators delete tasks that have a slot
    const { tasks, opensIn, backlog } = await this.driver.exchange([], 10);
    expect({ tasks, opensIn, backlog }).toEqual({ tasks: [], opensIn: 0, backlog: 0 });
    expect(await this.driver.broker.inspection.describeQueue('default')).toMatchObject({ pending: 0, active: 0 });
  }

  private async enqueue({ keys, wait, lost }: FairStep & { do: 'enqueue' }): Promise<void> {
    const { driver } = this;
    const processAt = wait === 0 ? undefined : driver.now + wait;
    const requests = keys.map((key) => {
      const share = SHARES[key];
      const id = `${key}-${++this.calls}`;
      this.live.set(id, key);
      if (!processAt) this.untouched.set(key, [...(this.untouched.get(key) ?? []), id]);
      return request({ id, ...(share && { headers: fairHeader(key, share) }) }, processAt ? { processAt } : {});
    });
    if (lost) this.lose('enqueue');
    expect(await driver.enqueue(requests)).toEqual(requests.map(() => 'enqueued'));
  }

  /** Whose reply is lost: its tasks are taken, and nobody runs them; what it settles is settled. */
  private async take(settle: Settlement[], count: number, lost: boolean): Promise<void> {
    const reply = await this.driver.exchange(settle, count);
    expect(reply.settled).toEqual(settle.map(() => 'settled'));
    for (const { kind, lease } of settle) {
      if (kind === 'done') this.live.delete(lease.id);
      if (kind === 'complete') this.live.delete(lease.id);
      if (kind === 'archive') this.park(lease.id);
    }
    if (this.paused) expect(reply.tasks).toEqual([]);
    for (const task of reply.tasks) this.started(task);
    if (!lost) this.active.push(...reply.tasks);
  }

  private started({ lease: { id } }: LeasedTask): void {
    const key = this.live.get(id);
    if (!key) throw new Error(`${id} runs, which had ended`);
    const now = this.driver.clock.now();
    this.starts.push({ at: now, key });
    const { rate, window } = limitsOf(key);
    if (rate && window && !this.isFilled) {
      const recent = this.starts.filter((one) => one.key === key && one.at > now - window).length;
      expect(recent, `starts of ${key}`).toBeLessThanOrEqual(rate);
    }
    const line = this.untouched.get(key) ?? [];
    const at = line.indexOf(id);
    if (at < 0) return;
    expect(at, `${id} before ${line[0]}`).toBe(0);
    line.shift();
  }

  private async settle({ index, how, take, lost }: FairStep & { do: 'settle' }): Promise<void> {
    const { now } = this.driver;
    const [task] = this.active.splice(index % Math.max(1, this.active.length), 1);
    if (!task) return;
    const settlement = {
      done: () => done(task),
      complete: () => completion(task, now + DAY),
      retry: () => retrial(task, now + 3),
      archive: () => archival(task),
      requeue: () => requeueing(task),
      wait: () => ({ kind: 'wait', lease: task.lease, waitlist: 'hold' }) as Settlement,
    }[how]();
    await this.take([settlement], take, lost);
    // Claimed again within the second, it has an equal lease.
    if (lost && take === 0) expect((await this.driver.exchange([settlement], 0)).settled).toEqual(['lost']);
  }

  private async move(milliseconds: number): Promise<void> {
    const { broker, clock } = this.driver;
    clock.advance(milliseconds);
    const { now } = this.driver;
    this.active = this.active.filter(({ lease }) => lease.expiresAt + GRACE > now);
    await broker.maintenance.forward('default');
    const { tasks } = await broker.maintenance.listExpiredLeases('default', now - GRACE, 100);
    if (tasks.length > 0)
      await this.take(
        tasks.map((task) => retrial(task, now + 1)),
        0,
        false,
      );
  }

  /** What an operator does to a task is no loss. */
  private async operate(index: number, action: 'run' | 'archive' | 'delete'): Promise<void> {
    const all = [...this.live.keys(), ...this.parked.keys()];
    const id = all[index % Math.max(1, all.length)];
    if (id === undefined) return;
    const [status] = await this.driver.broker.administration.moveTasks('default', action, [id]);
    if (status !== 'moved') return;
    this.touch(id);
    if (action === 'archive') this.park(id);
    if (action === 'run' && this.parked.has(id)) this.live.set(id, this.parked.get(id)!);
    if (action !== 'archive') this.parked.delete(id);
    if (action === 'delete') this.live.delete(id);
  }

  private park(id: string): void {
    const key = this.live.get(id);
    if (key) this.parked.set(id, key);
    this.live.delete(id);
  }

  private touch(id: string): void {
    for (const line of this.untouched.values()) if (line.includes(id)) line.splice(line.indexOf(id), 1);
  }

  private async pause(paused: boolean): Promise<void> {
    const { administration } = this.driver.broker;
    this.paused = paused;
    await (paused ? administration.pauseQueue('default') : administration.resumeQueue('default'));
  }

  /** No task is lost or twice, and no key runs more than it may. */
  private async check(): Promise<void> {
    const { inspection } = this.driver.broker;
    const running = new Map<Key, number>();
    for (const [id, key] of [...this.live, ...this.parked]) {
      const task = await inspection.getTask('default', id);
      expect(task, id).toBeDefined();
      if (task!.state === 'active') running.set(key, (running.get(key) ?? 0) + 1);
    }
    for (const [key, count] of running) {
      expect(count, `running of ${key}`).toBeLessThanOrEqual(limitsOf(key).concurrency ?? Infinity);
    }
    const { pending, active, scheduled, retry, held } = await inspection.describeQueue('default');
    const sum = pending + active + scheduled + retry + held;
    expect(sum, JSON.stringify({ pending, active, scheduled, retry, held })).toBe(this.live.size);
  }

  /** Longer than a lease and its grace. */
  static readonly LEASE_MS = (LEASE_SECONDS + GRACE + 1) * 1000;
}
