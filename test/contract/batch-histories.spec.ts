import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Chunk, CHUNK_SECONDS } from '../../lib/broker/batches.js';
import { ManualClock } from '../../lib/clock.js';
import { BatchSession, HOME } from './batch-session.js';
import { Driver, START, type World } from './driver.js';
import type { Ending } from './link-session.js';
import { memoryWorld } from './memory-world.js';
import { historyCount, parameters, redisStores, useBackdoor } from './property-stores.js';

const RETENTION = 3_600;
const QUEUES = ['default', 'other', HOME] as const;
type Queue = (typeof QUEUES)[number];

type Step =
  /** `calls`: after how many of its calls the adder dies; 3 is all. */
  | {
      readonly do: 'add';
      readonly queue: Queue;
      readonly count: number;
      readonly calls: number;
      readonly sure: boolean;
    }
  | { readonly do: 'run'; readonly queue: Queue; readonly ending: Ending; readonly count: number }
  | { readonly do: 'rerun'; readonly at: number }
  | { readonly do: 'delete'; readonly at: number; readonly tell: boolean }
  /** An adder that was taken for dead goes on. */
  | { readonly do: 'wake' }
  | { readonly do: 'close' }
  | { readonly do: 'keep' }
  | { readonly do: 'relay'; readonly times: number }
  | { readonly do: 'lose' }
  | { readonly do: 'replay'; readonly at: number };

const queue = fc.constantFrom(...QUEUES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('add'),
      queue,
      count: fc.constantFrom(1, 1, 2, 3, 8, 12),
      calls: fc.constantFrom(1, 2, 3, 3, 3),
      sure: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('run'),
      queue,
      ending: fc.constantFrom<Ending>('done', 'done', 'complete', 'archive', 'archive', 'revoke'),
      count: fc.constantFrom(1, 2, 20),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('rerun'), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete'), at: fc.nat(), tell: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wake') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('close') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('keep') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('relay'), times: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('replay'), at: fc.nat() }) },
);

/** A member as the model knows it: whether it has ended, and whether its task is archived. */
interface Member {
  readonly id: string;
  readonly queue: Queue;
  state: 'open' | 'succeeded' | 'failed';
  task: 'pending' | 'archived' | 'gone';
}

/** Plays a history, and compares what a batch says with a model of it. */
class Game {
  readonly session: BatchSession;
  private readonly members = new Map<string, Member>();
  /** Chunks that were reserved only. */
  private readonly asleep: Chunk[] = [];
  private closed = false;
  private died = false;
  /** Once all had ended. */
  private ended = false;

  private constructor(
    readonly driver: Driver,
    private batch = '',
  ) {
    this.session = new BatchSession(driver);
  }

  static async open(driver: Driver): Promise<Game> {
    const game = new Game(driver);
    game.batch = await game.session.open({ closeBy: driver.now + 100 * CHUNK_SECONDS, retention: RETENTION });
    return game;
  }

  async play(one: Step): Promise<void> {
    switch (one.do) {
      case 'add':
        await this.add(one);
        break;
      case 'run':
        for (let n = 0; n < one.count; n++) await this.run(one.queue, one.ending);
        break;
      case 'rerun':
        await this.rerun(one.at);
        break;
      case 'delete':
        await this.delete(one.at, one.tell);
        break;
      case 'wake':
        await this.wake();
        break;
      case 'close':
        await this.session.close(this.batch);
        this.closed = true;
        break;
      case 'keep':
        await this.recover(1);
        break;
      case 'relay':
        await this.session.relay(one.times);
        break;
      case 'lose':
        this.session.lose();
        break;
      case 'replay':
        await this.replay(one.at);
        break;
    }
    await this.check();
  }

  /** Closes the batch, runs what is left, and waits for the retention. */
  async finish(): Promise<void> {
    await this.play({ do: 'close' });
    for (const name of QUEUES) while (await this.run(name, 'done'));
    await this.recover(3);
    await this.check();
    await this.expectEnd();
    for (let member = this.pick(0, 'archived'); member; member = this.pick(0, 'archived')) await this.rerun(0);
    for (const name of QUEUES) while (await this.run(name, 'done'));
    await this.session.relay();
    await this.check();
    const expected = await this.expectEnd();
    this.driver.clock.advance(RETENTION * 1000);
    await this.recover(2);
    expect(await this.session.counts(this.batch)).toBe('no such batch');
    await this.replay(0);
    await this.recover(1);
    expect(await this.session.callbacks(this.batch)).toEqual(expected);
    for (const place of await this.session.links.places()) {
      expect(await this.session.links.keep(place, 0)).toMatchObject({ empty: true });
    }
  }

  /** Returns what it has called back. */
  private async expectEnd(): Promise<readonly string[]> {
    const all = [...this.members.values()];
    const failed = all.filter(({ state }) => state === 'failed').length;
    const state = failed === 0 ? 'succeeded' : 'completed';
    expect(await this.session.counts(this.batch)).toBe(`${state} ${all.length} 0 ${all.length - failed} ${failed}`);
    const expected = ['complete', ...(this.died ? ['death'] : []), ...(failed === 0 ? ['success'] : [])];
    expect(await this.session.callbacks(this.batch)).toEqual(expected);
    return expected;
  }

  private async add({ queue: name, count, calls, sure }: Extract<Step, { do: 'add' }>): Promise<void> {
    const { batches } = this.session;
    const { status, chunks } = await batches.reserve(HOME, this.batch, [{ queue: name, count }]);
    if (status === 'ended') return (expect(this.closed && this.allEnded()).toBe(true), undefined);
    if (calls === 1) return void this.asleep.push(chunks[0]!);
    const statuses = await this.session.create(chunks[0]!);
    if (!sure) expect(await this.session.create(chunks[0]!)).toEqual(statuses.map(() => 'conflict'));
    this.note(chunks[0]!);
    if (calls === 3) await this.session.confirm(chunks[0]!, count);
  }

  /** Its chunk may have been given up. */
  private async wake(): Promise<void> {
    const chunk = this.asleep.pop();
    if (!chunk) return;
    const { status } = this.session.took(await this.session.batches.add(chunk, this.session.members(chunk)));
    if (status === 'void') return;
    this.note(chunk);
    await this.session.confirm(chunk, chunk.count);
  }

  private note(chunk: Chunk): void {
    for (const { message } of this.session.members(chunk)) {
      this.members.set(message.id, { id: message.id, queue: chunk.queue as Queue, state: 'open', task: 'pending' });
    }
  }

  private async run(name: Queue, ending: Ending): Promise<boolean> {
    const [task] = await this.driver.take(1, name);
    if (!task) return false;
    await this.session.end(task, ending);
    const member = this.members.get(task.lease.id)!;
    member.task = ending === 'archive' ? 'archived' : 'gone';
    if (ending === 'archive' || ending === 'revoke') this.fail(member);
    else member.state = 'succeeded';
    return true;
  }

  private async rerun(at: number): Promise<void> {
    const member = this.pick(at, 'archived');
    if (!member) return;
    await this.session.act('run', member.id, member.queue);
    member.task = 'pending';
  }

  /** `tell` is what the inspector does, and not what others do. */
  private async delete(at: number, tell: boolean): Promise<void> {
    const member = this.pick(at, 'pending');
    if (!member) return;
    await this.driver.broker.administration.moveTasks(member.queue, 'delete', [member.id]);
    if (tell) this.session.took(await this.session.links.check(member.queue, [member.id]));
    member.task = 'gone';
    this.fail(member);
  }

  private fail(member: Member): void {
    if (member.state === 'succeeded') return;
    member.state = 'failed';
    this.died = true;
  }

  private pick(at: number, task: Member['task']): Member | undefined {
    const found = [...this.members.values()].filter((member) => member.task === task);
    return found[at % Math.max(1, found.length)];
  }

  /** What was sent before is delivered again, from some parcel on, the last first. */
  private async replay(at: number): Promise<void> {
    const { sent, links } = this.session;
    const again = sent.slice(at % Math.max(1, sent.length)).toReversed();
    for (const parcel of again) this.session.took(await links.deliver(parcel.to, [parcel]));
  }

  private async recover(minutes: number): Promise<void> {
    for (let n = 0; n < minutes; n++) {
      this.driver.clock.advance((CHUNK_SECONDS + 2) * 1000);
      await this.session.keep();
    }
  }

  private allEnded(): boolean {
    return [...this.members.values()].every(({ state }) => state !== 'open');
  }

  /** What holds at any time. */
  private async check(): Promise<void> {
    this.ended ||= this.closed && this.allEnded();
    const tasks = await this.driver.take(10, 'calls');
    for (const task of tasks) {
      const name = task.lease.id.split('~')[1]!;
      const known = this.session.called.get(this.batch) ?? [];
      expect(known).not.toContain(name);
      this.session.called.set(this.batch, [...known, name as 'success']);
      await this.session.end(task, 'done');
    }
    const called: readonly string[] = this.session.called.get(this.batch) ?? [];
    if (!this.closed) expect(called).toEqual([]);
    if (!this.ended) expect(called).not.toContain('complete');
    if (!this.died) expect(called).not.toContain('death');
    const all = [...this.members.values()];
    if (called.includes('success')) expect(all.every(({ state }) => state === 'succeeded')).toBe(true);
    const progress = await this.session.progress(this.batch);
    expect(progress).toMatchObject({
      total: all.length,
      succeeded: all.filter(({ state }) => state === 'succeeded').length,
    });
    expect(progress!.failed).toBeLessThanOrEqual(all.filter(({ state }) => state === 'failed').length);
  }
}

async function replay(world: World, clock: ManualClock, steps: readonly Step[]): Promise<void> {
  try {
    const game = await Game.open(new Driver(world, clock));
    for (const one of steps) await game.play(one);
    await game.finish();
  } catch (error) {
    await world.broker.close();
    throw error;
  }
  await world.cleanup();
}

const hold = (makeWorld: (clock: ManualClock) => Promise<World>, runs: number): Promise<void> =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new ManualClock(START);
      await replay(await makeWorld(clock), clock, steps);
    }),
    parameters(runs),
  );

const RUNS = historyCount(60);
const WHAT = 'calls back once each and never early, counts right, and leaves nothing, after any history';

describe('a batch in memory', () => {
  it(WHAT, async () => expect(await hold(async (clock) => memoryWorld(clock), RUNS * 3)).toBeUndefined(), 120_000);
});

describe.each(redisStores(RUNS))('a batch on %s', (_, start, runs) => {
  const backdoor = useBackdoor(start);

  /** Keys of batches: none is left when all is over. */
  const leftOver = async (): Promise<string[]> => {
    const keys = await Promise.all(backdoor().nodes.map((node) => node.keys('asynq:*')));
    return keys.flat().filter((key) => /\}:(?:links|outbox|timers|batches|(?:batch|part|offer):.*)$/.test(key));
  };

  it(
    WHAT,
    async () => expect(await hold((clock) => watched(backdoor().world(clock)), runs)).toBeUndefined(),
    Math.max(60_000, runs * 4_000),
  );

  async function watched(opened: Promise<World>): Promise<World> {
    const world = await opened;
    const cleanup = async (): Promise<void> => {
      await world.cleanup();
      expect(await leftOver()).toEqual([]);
    };
    return { ...world, cleanup };
  }
});
