import { expect, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { AsynqBatch } from '../../lib/batches/batch.js';
import { defineTask } from '../../lib/task/definition.js';
import type { WorkflowRun } from '../../lib/workflows/workflow-run.js';
import { workflow } from '../../lib/workflows/workflow.js';
import type { PeerServer, PeerStep } from '../support/peer.js';
import type { Interop } from './fixture.js';

const OK: PeerStep[] = [{ do: 'ok' }];
const identity = { key: (key: string) => key, rememberFor: '1h' } as const;

/** A definition for each state that its tasks are in once the queue is busy. */
const TASKS = {
  pending: defineTask<string>('idle', identity),
  active: defineTask<string>('held', identity),
  scheduled: defineTask<string>('later', identity),
  retry: defineTask<string>('flaky', identity),
  archived: defineTask<string>('dead', identity),
};
const Plain = { pending: 'idle', active: 'held', scheduled: 'later', retry: 'flaky', archived: 'dead' } as const;
const Next = defineTask<string>('next');

export type Busy = keyof typeof TASKS;
export const BUSY = Object.keys(TASKS) as Busy[];
/** Tasks that are linked, of each state: a step, one that is waited for by its key, one by its id, a member. */
export const LINKED_OF_EACH = 4;

const BEHAVIOURS: Record<string, PeerStep[]> = {
  held: [{ do: 'hold' }],
  flaky: [{ do: 'fail', error: 'no line' }],
  dead: [{ do: 'skipRetry', error: 'no funds' }],
};

interface Linked {
  readonly run: WorkflowRun;
  /** Tasks of the other queue that wait for one of this state. */
  readonly byKey: string;
  readonly byId: string;
}

/**
 * A queue that a Go server works on, with linked tasks in every state, and another where our server
 * runs what waits for them. What keeps runs and the batch is in the second.
 */
export class BusyQueue {
  readonly work: string;
  readonly home: string;
  private readonly linked = {} as Record<Busy, Linked>;
  /** In `work`; waits for a task that does not run, and is waited for. */
  readonly waiting: { readonly id: string; readonly prerequisite: string; readonly next: string }[] = [];
  private batch!: AsynqBatch;
  private server!: PeerServer;

  private constructor(
    private readonly interop: Interop,
    private readonly client: AsynqClient,
    private readonly broker: RedisBroker,
  ) {
    this.work = interop.queue();
    this.home = interop.queue();
  }

  static async create(interop: Interop): Promise<BusyQueue> {
    const broker = new RedisBroker(new RedisConnections({ host: interop.redis.host, port: interop.redis.port }));
    const client = new AsynqClient(broker);
    onTestFinished(() => client.close().then(() => broker.close()));
    const busy = new BusyQueue(interop, client, broker);
    await busy.fill();
    return busy;
  }

  /** Another Go server, with which all goes well. */
  async recover(): Promise<void> {
    const types = ['idle', 'held', 'later', 'flaky', 'dead', 'next'];
    const behaviours = Object.fromEntries(types.map((type) => [type, OK]));
    await this.interop.serve(this.interop.go, this.work, { behaviours });
  }

  /** The tasks under way succeed. */
  async release(): Promise<void> {
    const active = await this.interop.go.list(this.work, 'active');
    await Promise.all(active.map(({ id }) => this.interop.go.release(id)));
  }

  async ids(state: Busy): Promise<string[]> {
    return (await this.interop.go.list(this.work, state)).map(({ id }) => id);
  }

  /** By state that the tasks were in: the state of the run, and of the two tasks that wait; `done` is gone. */
  async ends(): Promise<Record<Busy, string>> {
    const ends = {} as Record<Busy, string>;
    for (const state of BUSY) {
      const { run, byKey, byId } = this.linked[state];
      const next = await Promise.all([byKey, byId].map((id) => this.stateOf(this.home, id)));
      ends[state] = [await run.state(), ...next].join(' ');
    }
    return ends;
  }

  /** Of the tasks that wait for a waiting one. */
  async chain(): Promise<string[]> {
    return Promise.all(this.waiting.map(({ next }) => this.stateOf(this.home, next)));
  }

  async counts(): Promise<string> {
    const { state, total, pending, succeeded, failed } = await this.batch.progress();
    return [state, total, pending, succeeded, failed].join(' ');
  }

  /** The callbacks that have started so far, each as often as it has. */
  callbacks(): string[] {
    const started = this.interop.ours.seen('start').filter(({ id }) => id.startsWith(`${this.batch.id}~`));
    return started.map(({ type }) => type).sort();
  }

  /** Deletes what was kept to be looked at. Resolves when no key of links is left in the queue of Go. */
  async expectNothingLeft(): Promise<void> {
    for (const { run } of Object.values(this.linked)) await run.delete();
    const { parcels } = await this.broker.batches.delete(this.batch.queue, this.batch.id);
    for (const parcel of parcels) await this.broker.links.deliver(parcel.to, [parcel]);
    await this.interop.until(async () => {
      const keys = await this.interop.raw.keys(`asynq:{${this.work}}:*`);
      expect(keys.filter((key) => /:(links|outbox|timers|g:asynq:waiting)$|:(part|watchers|early):/.test(key))).toEqual(
        [],
      );
    });
  }

  /** A keeper of another process has its first pass over the queue. */
  async keep(): Promise<void> {
    const { host, port } = this.interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    await broker.links.keep(this.work, 60);
    await broker.close();
  }

  stateOf(queue: string, id: string): Promise<string> {
    return this.broker.inspection.getTask(queue, id).then((task) => task?.state ?? 'done');
  }

  private async fill(): Promise<void> {
    const { interop, work, home } = this;
    const { go, ours } = interop;
    await interop.serve(ours, home, { behaviours: { next: OK, success: OK, complete: OK, death: OK } });
    const callback = (type: string): [string, undefined, { queue: string }] => [type, undefined, { queue: home }];
    this.batch = await this.client.openBatch({
      queue: home,
      name: work,
      onSuccess: callback('success'),
      onComplete: callback('complete'),
      onDeath: callback('death'),
    });
    await go.pause(work); // what waits is registered before Go begins a task
    for (const state of BUSY) if (state !== 'pending') await this.link(state);
    await go.unpause(work);
    this.server = await interop.serve(go, work, { behaviours: BEHAVIOURS, retryDelay: 3_600_000, concurrency: 20 });
    const each = LINKED_OF_EACH;
    await interop.until(async () =>
      expect(await go.queueInfo(work)).toMatchObject({ active: each, scheduled: each, retry: each, archived: each }),
    );
    await this.server.stop();
    await this.link('pending');
    await this.batch.close();
    await this.chainUp();
    expect(await go.queueInfo(work)).toMatchObject({ pending: each, active: each });
  }

  private async link(state: Busy): Promise<void> {
    const { client, work, home } = this;
    const options = { queue: work, ...(state === 'scheduled' && { processIn: '1h' as const }) };
    const key = `${work}-${state}`;
    const flow = workflow('busy')
      .add('part', workflow('part').add('first', Plain[state], key, { options }))
      .add('next', Next, key, { after: 'part', options: { queue: home } });
    const run = await client.start(flow, { id: key, queue: home });
    const byKey = await client.enqueue(Next, key, { queue: home, after: { task: TASKS[state], key: (of) => of } });
    await client.enqueue(TASKS[state], key, options);
    const plain = await client.enqueue(Plain[state], `${key} alone`, options);
    const byId = await client.enqueue(Next, key, { queue: home, after: plain });
    await this.batch.add(Plain[state], [key], options);
    this.linked[state] = { run, byKey: byKey.id, byId: byId.id };
  }

  /** Tasks that wait in the queue of Go, and tasks that wait for them. */
  private async chainUp(): Promise<void> {
    const { client, work, home } = this;
    for (let n = 0; n < 3; n++) {
      const never = await client.enqueue(Next, 'never', { queue: home, processIn: '1h' });
      const waiting = await client.enqueue(Next, 'waiting', { queue: work, after: never });
      const next = await client.enqueue(Next, 'last', { queue: home, after: waiting });
      this.waiting.push({ id: waiting.id, prerequisite: never.id, next: next.id });
    }
  }
}
