import { Cluster, type Redis } from 'ioredis';
import type { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { taskIdOfStep } from '../../lib/broker/workflows.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Keyspace, QueueKeys } from '../../lib/wire/keys.js';
import { endStaleLeases } from './chaos.js';
import type { Fleet, Ref } from './linked-fleet.js';

const PAGE = 500;
/** Longer than anything of links is kept, in seconds. */
const LONGEST_TTL = 9 * 86_400;
/** What a client may be refused: Redis is away, a batch was closed for it, or what it acts on has gone on meanwhile. */
const REFUSALS = [
  'BROKER_UNAVAILABLE',
  'BATCH_ADD',
  'BATCH_ENDED',
  'WORKFLOW_STATE',
  'WORKFLOW_TIMEOUT',
  'TASK_STATE',
  'TASK_NOT_FOUND',
];
const STATES = ['pending', 'active', 'scheduled', 'retry', 'waiting'] as const;

/** Looks at what is stored after chaos. Its findings are lists of what is wrong. */
export class Judge {
  private readonly inspector: AsynqInspector;
  private readonly keyspace = new Keyspace();

  constructor(
    private readonly broker: RedisBroker,
    private readonly redis: Redis | Cluster,
    private readonly fleet: Fleet,
    private readonly queues: readonly string[],
  ) {
    this.inspector = new AsynqInspector(broker);
  }

  /**
   * Lets end what a dead server or client would keep for a minute: leases of tasks, chunks that nobody has confirmed, retries.
   * With `probes`, runs and batches ask now for what Redis may have lost.
   */
  async hurry(probes = false): Promise<void> {
    const now = Date.now() / 1000;
    for (const queue of this.queues) {
      const keys = this.keyspace.queue(queue);
      const { timers } = keys;
      await endStaleLeases(this.redis, keys);
      const early = await this.redis.zrangebyscore(timers, now, now + (probes ? 600 : 60));
      const isHurried = (timer: string): boolean => (probes ? /^(chunk|run|batch) / : /^(chunk|run) /).test(timer);
      for (const timer of early.filter(isHurried)) await this.redis.zadd(timers, 'XX', 0, timer);
    }
  }

  /** What has not ended. */
  async open(): Promise<string[]> {
    const open: string[] = [];
    for (const queue of this.queues) {
      const info = await this.inspector.getQueueInfo(queue);
      for (const state of STATES) if (info[state] > 0) open.push(`${info[state]} tasks of ${queue} are ${state}`);
    }
    for (const { queue, id, state } of await this.runs()) if (state === 'running') open.push(`run ${id} of ${queue}`);
    for (const { queue, id, state, ...more } of await this.batches()) {
      if (state === 'open' || state === 'closed') open.push(`batch ${id} of ${queue}: ${JSON.stringify(more)}`);
    }
    return open;
  }

  /** What is wrong with that which has ended. */
  async faults(): Promise<string[]> {
    const faults = [...this.fleet.crashes, ...(await this.faultsOfBatches())];
    const { ran } = this.fleet;
    const archived = await this.archived();
    for (const { queue, id } of this.fleet.accepted.task) {
      if (!ran.has(id) && !this.fleet.givenUp.has(id) && !archived.has(id))
        faults.push(`task ${id} of ${queue} is lost`);
    }
    for (const [code, messages] of Object.entries(this.fleet.refused)) {
      if (!REFUSALS.includes(code.replace('ASYNQ_', ''))) faults.push(...new Set(messages));
    }
    const runs = await this.runs();
    const stored = new Set(runs.map(({ id }) => id));
    for (const { id } of this.fleet.accepted.run) if (!stored.has(id)) faults.push(`run ${id} is lost`);
    for (const ref of runs) faults.push(...(await this.faultsOfRun(ref, ran)));
    return faults;
  }

  /** Deletes what is kept for people. */
  async clear(): Promise<void> {
    for (const queue of this.queues) {
      await this.inspector.deleteAllTasks(queue, 'archived');
      await this.inspector.deleteAllTasks(queue, 'completed');
    }
    for (const { queue, id } of await this.runs()) await this.inspector.deleteWorkflow(queue, id);
    for (const { queue, id } of await this.batches()) await this.inspector.deleteBatch(queue, id);
  }

  /** Keys of tasks and links that have no end. */
  async left(): Promise<string[]> {
    const nodes = this.redis instanceof Cluster ? this.redis.nodes('master') : [this.redis];
    const left = await Promise.all(
      nodes.map(async (node) => {
        const keys = (await node.keys('asynq:{*')).filter(isOfTaskOrLinks);
        const stay = await Promise.all(keys.map((key) => staysForEver(node, key)));
        return keys.filter((_, index) => stay[index]);
      }),
    );
    return left.flat();
  }

  private async faultsOfBatches(): Promise<string[]> {
    const faults: string[] = [];
    const batches = await this.batches();
    const members = new Map<string, number>();
    for (const id of this.fleet.ran.keys()) {
      const [batch, number] = id.split('~') as [string, string];
      if (/^\d+$/.test(number)) members.set(batch, (members.get(batch) ?? 0) + 1);
    }
    const stored = new Set(batches.map(({ id }) => id));
    for (const { id } of this.fleet.accepted.batch) if (!stored.has(id)) faults.push(`batch ${id} is lost`);
    for (const batch of batches) {
      const { id, total, succeeded, failed } = batch;
      const fault = (what: string): void => void faults.push(`batch ${id}: ${what} ${JSON.stringify(batch)}`);
      if (total !== succeeded + failed) fault('members are not counted');
      if (total < (this.fleet.added.get(id) ?? 0)) fault(`has fewer than the ${this.fleet.added.get(id)} added`);
      if (succeeded > (members.get(id) ?? 0)) fault(`only ${members.get(id)} members ran`);
      for (const name of ['success', 'complete', 'death']) {
        const times = [...(this.fleet.ran.get(`${id}~${name}`)?.values() ?? [])];
        const must = name === 'complete' || (name === 'success' ? failed === 0 : failed > 0);
        const may = must || (name === 'death' && failed === 0); // one that died may have been run again
        if (must && times.length === 0) fault(`no callback ${name}`);
        if ((!may && times.length > 0) || times.some((count) => count > 1)) fault(`callback ${name} ran ${times}`);
      }
    }
    return faults;
  }

  private async faultsOfRun({ queue, id }: Ref, ran: Fleet['ran']): Promise<string[]> {
    const run = (await this.broker.workflows.run(queue, id))!;
    const faults: string[] = [];
    for (const step of run.graph) {
      const open = step.state === 'waiting' || step.state === 'ready';
      const task = taskIdOfStep(id, step.name);
      if (step.state === 'succeeded' && !ran.has(task)) faults.push(`step ${task} never ran`);
      if (run.state === 'succeeded' && (open || (step.state !== 'succeeded' && !step.optional))) {
        faults.push(`run ${id} has succeeded, and its step ${step.name} is ${step.state}`);
      }
      if (open && run.state !== 'cancelled') faults.push(`run ${id} is ${run.state}, step ${step.name} ${step.state}`);
    }
    return faults;
  }

  private async archived(): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const queue of this.queues) {
      for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
        const page = await this.broker.listing.listIds(queue, {
          state: 'archived',
          size: PAGE,
          ...(cursor && { cursor }),
        });
        for (const id of page.ids) ids.add(id);
        ({ cursor } = page);
      }
    }
    return ids;
  }

  private runs() {
    return this.all((queue, range) => this.broker.workflows.runs(queue, range));
  }

  private batches() {
    return this.all(async (queue, range) =>
      (await this.broker.batches.batches(queue, range)).map((batch) => ({ ...batch, queue })),
    );
  }

  private async all<T>(read: (queue: string, range: { offset: number; size: number }) => Promise<T[]>): Promise<T[]> {
    const all: T[] = [];
    for (const queue of this.queues) {
      for (let offset = 0, page: T[] = []; offset === 0 || page.length === PAGE; offset += PAGE) {
        all.push(...(page = await read(queue, { offset, size: PAGE })));
      }
    }
    return all;
  }
}

/** A hash without a message is no task: a Go server has written the result of one that another server has ended meanwhile. */
async function staysForEver(node: Redis, key: string): Promise<boolean> {
  const ttl = await node.ttl(key);
  if (ttl !== -1) return ttl > LONGEST_TTL;
  return !key.includes('}:t:') || (await node.hexists(key, 'msg')) === 1;
}

/** The keys of a place that are not its lists and counters. */
function isOfTaskOrLinks(key: string): boolean {
  const place = /^asynq:\{([^}]*)\}:/.exec(key)?.[1];
  if (place === undefined) return false;
  const keys = new QueueKeys('asynq', place);
  return keys.isAboutLinks(key) || key.startsWith(keys.taskPrefix) || key === keys.waitingTasks;
}
