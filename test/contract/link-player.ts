import { expect } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import type { LinkedRequest, Prerequisite, StoredWait } from '../../lib/broker/links.js';
import type { TaskState } from '../../lib/wire/states.js';
import type { Driver } from './driver.js';
import { LINK_QUEUES, type LinkStep, type PickedPrerequisite } from './link-history.js';
import { LinkSession } from './link-session.js';

interface Name {
  readonly queue: string;
  readonly id: string;
}

type Truth = 'succeeded' | 'failed';
type StepOf<D extends LinkStep['do']> = Extract<LinkStep, { do: D }>;

/** Longer than any history: marks stay. */
const REMEMBERED = 86_400;
const OBSERVED = ['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'waiting'] as const;

/** Plays a history on a broker, and knows how every task has really ended. */
export class LinkPlayer {
  readonly session: LinkSession;
  private readonly submitted: Name[] = [];
  private readonly active = new Map<string, LeasedTask>();
  /** How tasks have ended last, by queue and id, and the tasks of a key, by key. */
  private readonly truth = new Map<string, Truth>();
  private readonly keys = new Map<string, string>();
  private readonly keyTruth = new Map<string, Truth>();

  constructor(readonly driver: Driver) {
    this.session = new LinkSession(driver);
  }

  async play(step: LinkStep, number: number): Promise<unknown> {
    const answer = await this.perform(step, number);
    if (step.lost) this.session.lose();
    else await this.session.relay();
    return answer;
  }

  private async perform(step: LinkStep, number: number): Promise<unknown> {
    switch (step.do) {
      case 'submit':
        return this.submit(step, number);
      case 'claim':
        return this.claim(step.queue);
      case 'end':
        return this.end(step);
      case 'act':
        return this.act(step);
      case 'forward':
        return this.driver.broker.maintenance.forward(step.queue);
      case 'keep':
        return this.keep();
      case 'wait':
        return undefined;
    }
  }

  private async submit(step: StepOf<'submit'>, number: number): Promise<unknown> {
    const { queue, key, onFailure, onTimeout, delay, dies } = step;
    const name = { queue, id: `t${number}` };
    const mark = key === undefined ? undefined : { type: 'pay', key, rememberFor: REMEMBERED };
    const after = step.after.flatMap((one) => this.prerequisite(one) ?? []);
    const waiting = this.session.waiting(name.id, after, {
      message: { queue },
      onFailure,
      onTimeout,
      deadline: this.driver.now + step.waitAtMost,
      processAt: delay === undefined ? undefined : this.driver.now + delay,
      mark,
    });
    const request: LinkedRequest = after.length > 0 ? waiting : { ...waiting, wait: undefined };
    if (after.length > 0 && !(await this.session.watch(request))) return 'missing';
    if (dies) return 'dead';
    this.submitted.push(name);
    if (key !== undefined) this.keys.set(nameOf(name), key);
    return this.session.enqueue(request);
  }

  private prerequisite(picked: PickedPrerequisite): Prerequisite | undefined {
    if ('key' in picked) return { type: 'pay', key: picked.key };
    return this.submitted[picked.task % Math.max(this.submitted.length, 1)];
  }

  private async claim(queue: string): Promise<string[]> {
    const { tasks } = this.session.took(await this.driver.exchange([], 1000, queue));
    for (const task of tasks) this.active.set(nameOf({ queue, id: task.lease.id }), task);
    return tasks.map(({ lease }) => lease.id).sort();
  }

  private async end({ task: number, ending }: StepOf<'end'>): Promise<unknown> {
    const names = [...this.active.keys()].sort();
    const name = names[number % Math.max(names.length, 1)];
    if (name === undefined) return undefined;
    const task = this.active.get(name)!;
    this.active.delete(name);
    if (ending === 'retry') return this.retry(task);
    if (ending === 'unseen') await this.driver.world.completeUnseen(task.lease.queue, task.lease.id);
    else await this.session.end(task, ending);
    this.note(name, ending === 'archive' || ending === 'revoke' ? 'failed' : 'succeeded', true);
    return name;
  }

  private async retry({ lease, message }: LeasedTask): Promise<unknown> {
    const again = { ...message, retried: message.retried + 1, errorMsg: 'again' };
    const settlement = {
      kind: 'retry',
      lease,
      message: again,
      retryAt: this.driver.now + 5,
      countAsFailure: true,
    } as const;
    return this.session.took(await this.driver.exchange([settlement], 0, lease.queue)).settled;
  }

  private async act({ task, action, tells }: StepOf<'act'>): Promise<unknown> {
    const name = this.submitted[task % Math.max(this.submitted.length, 1)];
    if (!name || (await this.session.stateOf(name.id, name.queue)) === 'completed') return undefined;
    const [status] = await this.driver.broker.administration.moveTasks(name.queue, action, [name.id]);
    if (status === 'moved') this.note(nameOf(name), action === 'run' ? undefined : 'failed', tells);
    if (tells) this.session.took(await this.session.links.check(name.queue, [name.id]));
    return status;
  }

  /** One pass over each place, in the same order on every broker. */
  private async keep(): Promise<void> {
    for (const place of (await this.session.links.places()).sort()) {
      this.session.took(await this.session.links.keep(place, 0));
      await this.session.relay();
    }
  }

  /** @param end `undefined`: it is open again @param told whoever waits for the key learns of it, even if it is run again */
  private note(name: string, end: Truth | undefined, told: boolean): void {
    if (this.truth.get(name) === 'succeeded') return;
    if (end) this.truth.set(name, end);
    else this.truth.delete(name);
    const key = this.keys.get(name);
    if (key !== undefined && end && told && this.keyTruth.get(key) !== 'succeeded') this.keyTruth.set(key, end);
  }

  private truthOf(prerequisite: Prerequisite): Truth | undefined {
    if ('id' in prerequisite) return this.truth.get(nameOf(prerequisite));
    const { key } = prerequisite;
    const hasFailed = [...this.keys].some(([name, own]) => own === key && this.truth.get(name) === 'failed');
    return this.keyTruth.get(key) ?? (hasFailed ? 'failed' : undefined);
  }

  /** All that can be seen of the tasks, in one order; of several failures that come at once any may be the first. */
  async observe(): Promise<unknown> {
    const { broker } = this.driver;
    const seen: unknown[] = [];
    for (const queue of LINK_QUEUES) {
      for (const state of OBSERVED) {
        const { tasks } = await broker.listing.listTasks(queue, { state: state as TaskState, size: 1000 });
        for (const { message, nextProcessAt, result } of tasks.toSorted((a, b) =>
          a.message.id < b.message.id ? -1 : 1,
        )) {
          const wait = await broker.links.waitOf(queue, message.id);
          seen.push(unordered({ queue, state, message, nextProcessAt, result: result?.toString(), wait }));
        }
      }
    }
    return seen;
  }

  /** Passes of the keeper until nothing happens; then no task waits whose prerequisites have ended, and none for too long. */
  async expectEnds(): Promise<void> {
    await this.session.keep();
    for (const name of this.submitted) {
      const state = await this.session.stateOf(name.id, name.queue);
      const wait = await this.session.links.waitOf(name.queue, name.id);
      if (state === 'waiting') this.expectToWait(name, wait!);
      if (wait?.cancelled)
        expect(
          wait.edges.some((edge) => edge.state !== 'succeeded'),
          nameOf(name),
        ).toBe(true);
    }
  }

  private expectToWait(name: Name, { edges, onFailure, deadline }: StoredWait): void {
    const context = `${nameOf(name)} ${JSON.stringify(edges)}`;
    expect(deadline, context).toBeGreaterThan(this.driver.now);
    const states = edges.map(({ prerequisite, state }) => {
      const truth = this.truthOf(prerequisite);
      if (truth === 'succeeded') expect(state, context).toBe('succeeded');
      if (truth === 'failed') expect(state, context).not.toBe('waiting');
      return state;
    });
    expect(
      states.some((state) => state === 'waiting' || (state === 'failed' && onFailure === 'wait')),
      context,
    ).toBe(true);
    if (onFailure === 'cancel') expect(states, context).not.toContain('failed');
  }

  /** Runs all that is left; then, at the latest when every wait is over, nothing waits. */
  async finish(): Promise<void> {
    for (let round = 0; round < 200; round++) {
      await this.session.keep();
      let worked = 0;
      for (const queue of LINK_QUEUES) {
        await this.driver.broker.maintenance.forward(queue);
        await this.claim(queue);
      }
      for (; this.active.size > 0; worked++) {
        await this.end({ do: 'end', lost: false, task: 0, ending: 'done' });
        await this.session.relay();
      }
      if (worked === 0) return;
    }
    throw new Error('the tasks never end');
  }
}

const nameOf = ({ queue, id }: Name): string => JSON.stringify([queue, id]);

/** The same without what tells one failed prerequisite from another. */
const unordered = (seen: object): unknown =>
  JSON.parse(
    JSON.stringify(seen, (name, value: unknown) => {
      if (name === 'reason') return 'failed';
      const isCancelled = name === 'errorMsg' && String(value).startsWith('asynq: prerequisite failed');
      return isCancelled ? 'cancelled' : value;
    }),
  );
