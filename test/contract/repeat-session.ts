import { expect } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import type { RepeatPolicy, RepeatReply } from '../../lib/broker/uniqueness.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { repeat } from '../support/messages.js';
import { archival, completion, done, Driver, retrial } from './driver.js';

/** Longer than any history, as locks in Redis end in real time. */
const TTL = 1_000_000;
const DAY = 86_400;

/** Keys of one policy, for which there are rules; and one that calls of all policies compete for. */
export const KEYS = ['latest', 'debounce', 'supersede', 'replace', 'existing', 'reject', 'once', 'any'] as const;
export type Key = (typeof KEYS)[number];

export interface Call {
  readonly key: Key;
  /** For the key `any`. */
  readonly policy: RepeatPolicy;
  /** Seconds; 0: at once. */
  readonly wait: number;
}

export type RepeatStep =
  | { readonly do: 'enqueue'; readonly calls: readonly Call[]; readonly lost: boolean }
  | { readonly do: 'take'; readonly count: number }
  | { readonly do: 'settle'; readonly index: number; readonly how: 'done' | 'complete' | 'retry' | 'archive' }
  | { readonly do: 'move'; readonly seconds: number }
  | { readonly do: 'operate'; readonly index: number; readonly action: 'run' | 'archive' | 'delete' };

/** Plays steps on one broker, and checks what must hold of each. Equal steps give equal ids. */
export class RepeatSession {
  private calls = 0;
  private readonly ids: { readonly id: string; readonly key: Key }[] = [];
  private readonly active: LeasedTask[] = [];
  /** The payloads that must still run, by key. */
  private readonly due = new Map<Key, string>();

  constructor(readonly driver: Driver) {}

  /** Returns what the broker has replied. */
  async play(step: RepeatStep): Promise<unknown> {
    switch (step.do) {
      case 'enqueue':
        return this.enqueue(step.calls);
      case 'take':
        return this.take(step.count);
      case 'settle':
        return this.settle(step.index, step.how);
      case 'move':
        this.driver.clock.advance(step.seconds * 1000);
        return this.forward();
      case 'operate':
        return this.operate(step.index, step.action);
    }
  }

  /** Runs all that is left: the last trigger of each key has its run. */
  async drain(): Promise<void> {
    for (let round = 0; round < 20; round++) {
      this.driver.clock.advance(100_000);
      await this.forward();
      await this.take(100);
      while (this.active.length > 0) await this.settle(0, 'done');
    }
    expect(Object.fromEntries(this.due)).toEqual({});
  }

  private async enqueue(calls: readonly Call[]): Promise<readonly RepeatReply[]> {
    const { driver } = this;
    const requests = calls.map(({ key, policy, wait }) => {
      const own = key === 'any' ? policy : key;
      const id = `t${++this.calls}`;
      const delay = own === 'debounce' ? wait + 1 : wait;
      const processAt = delay === 0 ? undefined : driver.now + delay;
      const limit = own === 'debounce' ? driver.now + 12 : own === 'latest' ? driver.now + DAY : undefined;
      return repeat(own, id, { lock: key, ttl: TTL, processAt, limit });
    });
    const { replies: all } = await driver.broker.uniqueness.enqueue('default', requests);
    const replies = all as readonly RepeatReply[];
    replies.forEach(({ status }, index) => {
      const [{ key }, { message }] = [calls[index]!, requests[index]!];
      if (status === 'enqueued' && !this.keyOf(message.id)) this.ids.push({ id: message.id, key });
      const counts = key === 'latest' || key === 'debounce' || key === 'supersede' || key === 'replace';
      if (counts && (status === 'enqueued' || status === 'replaced')) this.due.set(key, String(message.payload));
      if (counts && key !== 'replace') expect(status).not.toBe('duplicate'); // no trigger is refused
    });
    await this.checkLive();
    return replies;
  }

  private async take(count: number): Promise<string[]> {
    const tasks = await this.driver.take(count);
    for (const task of tasks) {
      this.active.push(task);
      const key = this.keyOf(task.message.id);
      if (key && this.due.get(key) === String(task.message.payload)) this.due.delete(key);
    }
    const latest = this.active.filter(({ lease }) => this.keyOf(lease.id) === 'latest');
    expect(latest.length).toBeLessThanOrEqual(1);
    return tasks.map(({ lease }) => lease.id);
  }

  private async settle(index: number, how: 'done' | 'complete' | 'retry' | 'archive'): Promise<unknown> {
    const { driver, active } = this;
    const [task] = active.splice(index % Math.max(1, active.length), 1);
    if (!task) return undefined;
    const settlement = {
      done: done(task),
      complete: completion(task, driver.now + DAY),
      retry: retrial(task, driver.now + 3),
      archive: archival(task),
    }[how];
    return driver.settle(settlement);
  }

  private async forward(): Promise<number> {
    const { maintenance, links } = this.driver.broker;
    const { moved } = await maintenance.forward('default');
    await links.keep('default', 0);
    return moved;
  }

  /** What an operator does to tasks of this key is no loss. Runs of `latest` by hand may overlap. */
  private async operate(index: number, action: 'run' | 'archive' | 'delete'): Promise<unknown> {
    const { administration, links } = this.driver.broker;
    const one = this.ids[index % Math.max(1, this.ids.length)];
    if (!one || (action === 'run' && one.key === 'latest')) return undefined;
    const status = await administration.moveTasks('default', action, [one.id]);
    if (action !== 'run') await links.check('default', [one.id]);
    const stored = (await this.driver.queue()).tasks[one.id];
    if (action !== 'run' && (stored === undefined || stored.state === 'archived')) this.due.delete(one.key);
    return status;
  }

  private keyOf(id: string): Key | undefined {
    return this.ids.find((one) => one.id === id)?.key;
  }

  /** One runs and one follows, never a third; of the others at most one has not started. */
  private async checkLive(): Promise<void> {
    const { tasks, locks } = await this.driver.queue();
    const live = (key: Key, states: readonly string[]) =>
      this.ids.filter((one) => one.key === key && states.includes(tasks[one.id]?.state ?? '')).length;
    const unstarted = ['pending', 'scheduled', 'aggregating'];
    expect(live('latest', [...unstarted, 'retry', 'active'])).toBeLessThanOrEqual(2);
    for (const key of ['existing', 'reject', 'replace', 'once'] as const) {
      expect(live(key, [...unstarted, 'retry', 'active'])).toBeLessThanOrEqual(1);
    }
    for (const [lock, { owner }] of Object.entries(locks)) {
      expect(lock.startsWith(new Keyspace(this.driver.broker.keyPrefix).queue('default').lockPrefix)).toBe(true);
      expect(this.ids.some(({ id }) => id === owner)).toBe(true);
    }
  }
}
