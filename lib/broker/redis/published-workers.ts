import { encodeWorkerInfo } from '../../wire/codec.js';
import type { WorkerInfo } from '../../wire/message.js';
import { MAX_CALL_BYTES } from '../call-size.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

/** One call of write-server-state.lua. */
interface Step {
  readonly ended: readonly string[];
  readonly started: readonly WorkerInfo[];
}

export interface ServerState {
  /** The keys of the server and of its running tasks. */
  readonly keys: readonly [server: string, workers: string];
  /** Seconds. */
  readonly ttl: string;
  readonly info: Buffer;
}

/**
 * Publishes which tasks servers run. It knows what it has published, and so sends only what has
 * started or ended since, with a bound of the bytes in a call. Redis compares the number of tasks:
 * if it has lost them, all are sent again.
 */
export class PublishedWorkers {
  /** By key: the attempt that is published of each id. */
  private readonly published = new Map<string, ReadonlyMap<string, string>>();

  constructor(private readonly scripts: Scripts) {}

  async write(state: ServerState, workers: readonly WorkerInfo[]): Promise<void> {
    const [, key] = state.keys;
    const known = this.published.get(key);
    // Until all is written, nobody knows what is.
    this.published.delete(key);
    const byId = new Map(workers.map((worker) => [worker.taskId, worker]));
    const written = (known && (await this.send(state, known, byId))) || (await this.send(state, undefined, byId));
    if (written) this.published.set(key, new Map(Array.from(byId, ([id, worker]) => [id, attemptOf(worker)])));
  }

  /** The state of a server is removed. */
  forget(key: string): void {
    this.published.delete(key);
  }

  /**
   * @param known what is published; `undefined`: unknown
   * @returns whether all is written
   */
  private async send(
    { keys, ttl, info }: ServerState,
    known: ReadonlyMap<string, string> | undefined,
    workers: ReadonlyMap<string, WorkerInfo>,
  ): Promise<boolean> {
    const ids = new Set(known?.keys());
    let first = known === undefined;
    for (const { ended, started } of stepsTo(workers, known ?? new Map())) {
      const argv: Argument[] = [ttl, info, first ? '' : String(ids.size), String(ended.length), ...ended];
      for (const worker of started) argv.push(worker.taskId, encodeWorkerInfo(worker));
      if ((await this.scripts.run('monitor', 'writeServerState', keys, argv)) !== 1) return false;
      first = false;
      for (const id of ended) ids.delete(id);
      for (const { taskId } of started) ids.add(taskId);
    }
    return true;
  }
}

/** A task that runs again is another attempt, and so is one of the same id in another queue. */
const attemptOf = ({ queue, startTime, deadline }: WorkerInfo): string => `${startTime} ${deadline} ${queue}`;

/** At least one step, as the server itself is published by each. */
function stepsTo(workers: ReadonlyMap<string, WorkerInfo>, known: ReadonlyMap<string, string>): Step[] {
  const ended = [...known.keys()].filter((id) => !workers.has(id));
  const steps: Step[] = [];
  let started: WorkerInfo[] = [];
  let bytes = 0;
  const cut = (): unknown => steps.push({ ended: steps.length === 0 ? ended : [], started });
  for (const [id, worker] of workers) {
    if (known.get(id) === attemptOf(worker)) continue;
    bytes += worker.taskPayload.length;
    if (bytes > MAX_CALL_BYTES && started.length > 0) {
      cut();
      [started, bytes] = [[], worker.taskPayload.length];
    }
    started.push(worker);
  }
  if (started.length > 0 || steps.length === 0) cut();
  return steps;
}
