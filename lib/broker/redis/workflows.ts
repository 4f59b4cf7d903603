import { type Clock, floorSeconds } from '../../clock.js';
import type { StepLink } from '../../task/contexts.js';
import type { Keyspace } from '../../wire/keys.js';
import { waitInCircle } from '../cycles.js';
import type { Caused } from '../links.js';
import type { NewRun, NewStep, RunSummary, StoredRun, WorkflowsRole } from '../workflows.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import { persist } from './producer.js';
import { ResultReads } from './result-reads.js';
import type { StoredResults } from './stored-results.js';
import { nanoseconds } from './scripts/arguments.js';
import { PackedReader } from './scripts/packed-reader.js';
import { readCaused } from './scripts/caused.js';
import { queueKeys } from './scripts/queue-keys.js';
import { encodeAdded, encodeRun } from './scripts/runs.js';
import { readRun, readSummary } from './scripts/stored-runs.js';
import type { Argument } from './scripts/script-command.js';
import { SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** Steps that one command of a script reads. */
const READ_AT_ONCE = '300';

const RESENT = SCRIPTS.startRuns.argv.indexOf('resent');

const GROWN = ['added', 'missing', 'ended', 'unknown', 'taken'] as const;
const CANCELLED = ['cancelled', 'missing', 'ended'] as const;
const RETRIED = ['retried', 'missing', 'notFailed'] as const;
const DELETED = ['deleted', 'missing', 'running'] as const;

type Reply<M extends keyof WorkflowsRole> = ReturnType<WorkflowsRole[M]>;

/** Runs of workflows: starts and adds over `produce`, all else over `monitor`. */
export class RedisWorkflows implements WorkflowsRole {
  private readonly reads: ResultReads;

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    /** Lists a queue for asynq's tools and for the keepers, when that is due. */
    private readonly list: (queue: string) => readonly (Promise<void> | undefined)[],
    stored: StoredResults,
  ) {
    this.reads = new ResultReads(connections, keyspace, stored);
  }

  async start(
    queue: string,
    runs: readonly NewRun[],
  ): Promise<Caused & { readonly statuses: readonly ('started' | 'exists')[] }> {
    if (runs.length === 0) return { statuses: [], parcels: [] };
    const now = Math.floor(this.clock.now());
    const encoded = runs.flatMap((run) => encodeRun(queue, run, now)); // throws before anything is written
    await this.register(
      queue,
      runs.flatMap(({ steps }) => steps),
    );
    const own = this.keyspace.queue(queue);
    const keys = queueKeys('startRuns', own).concat(runs.map(({ id }) => own.run(id)));
    const argv = this.arguments(queue).concat('0', encoded);
    const reply = await persist((attempt) => {
      if (attempt > 1) argv[RESENT] = '1';
      return this.scripts.run('produce', 'startRuns', keys, argv);
    });
    const [statuses, parcels] = reply as [number[], Buffer];
    return {
      statuses: statuses.map((status) => (status === 1 ? 'started' : 'exists')),
      ...readCaused(queue, parcels),
    };
  }

  async grow(queue: string, run: string, steps: readonly NewStep[]): Reply<'grow'> {
    if (waitInCircle(steps)) return { status: 'unknown', parcels: [] };
    const encoded = encodeAdded(queue, steps);
    await this.register(queue, steps);
    const keys = this.keysOf(queue, run);
    const argv = this.arguments(queue).concat(run, encoded);
    const [status, parcels] = (await this.scripts.run('produce', 'growRun', keys, argv)) as [number, Buffer];
    return { status: GROWN[status]!, ...readCaused(queue, parcels) };
  }

  async run(queue: string, run: string): Promise<StoredRun | undefined> {
    const packed = await this.scripts.run(
      'monitor',
      'describeRun',
      [this.keyspace.queue(queue).run(run)],
      [READ_AT_ONCE],
    );
    return readRun(queue, run, packed as Buffer);
  }

  async summary(queue: string, run: string): Promise<RunSummary | undefined> {
    const key = this.keyspace.queue(queue).run(run);
    const read = (client: RedisClient) => client.hmgetBuffer(key, 'c', 'o');
    const [counts, options] = await this.connections.run('monitor', 'HMGET', read);
    return counts ? readSummary(queue, run, counts, options?.toString() ?? '{}') : undefined;
  }

  async runs(queue: string, { offset, size }: { offset: number; size: number }): Promise<RunSummary[]> {
    if (size <= 0) return [];
    const { runs, runPrefix } = this.keyspace.queue(queue);
    const argv = [runPrefix, String(offset), String(offset + size - 1)];
    const reader = new PackedReader((await this.scripts.run('monitor', 'listRuns', [runs], argv)) as Buffer);
    const found: RunSummary[] = [];
    while (reader.more()) found.push(readSummary(queue, reader.text(), reader.view(), reader.text()));
    return found;
  }

  results(queue: string, run: string, steps: readonly string[], since?: string): Reply<'results'> {
    return this.reads.named(queue, run, steps, since);
  }

  resultsBefore(step: StepLink): Reply<'resultsBefore'> {
    return this.reads.before(step);
  }

  async cancel(queue: string, run: string, reason: string): Reply<'cancel'> {
    const reply = await this.change('cancelRun', queue, run, [reason]);
    const [status, tasks, parcels] = reply as [number, Buffer[], Buffer];
    return { status: CANCELLED[status]!, tasks: readTasks(tasks), ...readCaused(queue, parcels) };
  }

  async retry(queue: string, run: string): Reply<'retry'> {
    const [status, steps, parcels] = (await this.change('retryRun', queue, run)) as [number, number, Buffer];
    return { status: RETRIED[status]!, steps, ...readCaused(queue, parcels) };
  }

  async delete(queue: string, run: string): Reply<'delete'> {
    const [status, parcels] = (await this.change('deleteRun', queue, run)) as [number, Buffer];
    return { status: DELETED[status]!, ...readCaused(queue, parcels) };
  }

  private change(
    script: 'cancelRun' | 'retryRun' | 'deleteRun',
    queue: string,
    run: string,
    further: readonly Argument[] = [],
  ): Promise<unknown> {
    const keys = this.keysOf(queue, run);
    if (script === 'deleteRun') keys.push(this.keyspace.queue(queue).runs);
    return this.scripts.run('monitor', script, keys, this.arguments(queue).concat(run, further));
  }

  /** What every script of links checks, and the run. */
  private keysOf(queue: string, run: string): string[] {
    const own = this.keyspace.queue(queue);
    return queueKeys('check', own).concat(own.run(run));
  }

  private async register(place: string, steps: readonly NewStep[]): Promise<void> {
    const queues = new Set([place, ...steps.map(({ request }) => request.message.queue)]);
    const pending = [...queues].flatMap((queue) => this.list(queue)).filter((promise) => promise !== undefined);
    if (pending.length > 0) await Promise.all(pending);
  }

  /** The arguments that every script of links begins with. */
  private arguments(place: string): Argument[] {
    const now = this.clock.now();
    return [this.keyspace.queue(place).taskPrefix, String(floorSeconds(now)), nanoseconds(now)];
  }
}

function readTasks(flat: readonly Buffer[]): { queue: string; id: string }[] {
  const tasks: { queue: string; id: string }[] = [];
  for (let i = 0; i < flat.length; i += 2) tasks.push({ queue: String(flat[i]), id: String(flat[i + 1]) });
  return tasks;
}
