import { mapConcurrent, withTimeout } from '../async.js';
import type { Clock } from '../clock.js';
import { QueueNotFoundError } from '../errors.js';
import type { AsynqInspector } from '../inspector/inspector.js';
import type { QueueInfo } from '../inspector/views.js';
import { QueueChoice } from './queue-choice.js';

export interface QueueReaderOptions {
  readonly inspector: Pick<AsynqInspector, 'queues' | 'getQueueInfo' | 'servers' | 'fairnessKeys'>;
  readonly clock: Clock;
  /** The queues to read; default: all, up to `maxQueues`. */
  readonly queues?: readonly string[];
  /** How many queues are read and exported at most. */
  readonly maxQueues: number;
  /** Of each fair queue, how many keys are read: those with the most waiting tasks. */
  readonly topKeys: number;
  /** The queues of the server of this process. */
  readonly served: () => Iterable<string>;
  /** How many queues are read at a time. */
  readonly concurrency: number;
  /** Milliseconds for which scrapes share a reading. */
  readonly cacheFor: number;
  /** Milliseconds after which a scrape goes on without the queues that are not read by then. */
  readonly timeout: number;
  /**
   * Called for a queue that could not be read, or with an empty name for the list of queues or of
   * servers.
   */
  readonly onError: (queue: string) => void;
}

/** The queues, as far as they could be read. */
export interface Reading {
  readonly queues: readonly QueueInfo[];
  /**
   * How many running servers of any kind serve each queue; `undefined` when that could not be read.
   */
  readonly servers: ReadonlyMap<string, number> | undefined;
  /** The keys with the most waiting tasks of each fair queue, `topKeys` at most. */
  readonly keys: readonly { readonly queue: string; readonly key: string; readonly waiting: number }[];
  /** How many queues are left out, because there are more than `maxQueues`. */
  readonly leftOut: number;
}

type States = Omit<Reading, 'keys'>;

/**
 * Reads the queues for a scrape: some at a time, each independently, and once for concurrent
 * scrapes.
 */
export class QueueReader {
  private current: Promise<Reading> | undefined;
  private readUntil = 0;
  private readonly choice: QueueChoice;

  constructor(private readonly options: QueueReaderOptions) {
    this.choice = new QueueChoice(options.maxQueues);
  }

  /** Never rejects. */
  read(): Promise<Reading> {
    const { clock, cacheFor } = this.options;
    if (this.current && clock.now() < this.readUntil) return this.current;
    this.readUntil = Infinity; // scrapes during the reading share it
    const reading = this.readAll().finally(() => (this.readUntil = clock.now() + cacheFor));
    this.current = reading;
    return reading;
  }

  private async readAll(): Promise<Reading> {
    const until = this.options.clock.now() + this.options.timeout;
    const reading = await this.readStates(until);
    return { ...reading, keys: await this.readKeys(reading.queues, until) };
  }

  private async readKeys(queues: readonly QueueInfo[], until: number): Promise<Reading['keys']> {
    const { topKeys: size, concurrency, inspector } = this.options;
    const fair = size > 0 ? queues.filter(({ keys }) => keys) : [];
    const lists = await mapConcurrent(fair, concurrency, async ({ queue }) => {
      const list = await this.attempt(queue, until, () => inspector.fairnessKeys(queue, { size }));
      return list?.keys.flatMap(({ key, waiting }) => (waiting > 0 ? [{ queue, key, waiting }] : [])) ?? [];
    });
    return lists.flat();
  }

  private async readStates(until: number): Promise<States> {
    const { queues: wanted, inspector, clock, timeout } = this.options;
    // The choice of queues may depend on the servers: reading these must not use up the time.
    const servers = this.attempt('', wanted ? until : clock.now() + timeout / 2, () => inspector.servers());
    if (wanted) {
      const queues = await this.readQueues([...wanted].sort(), until);
      return { queues, servers: countByQueue(await servers), leftOut: 0 };
    }
    const names = (await this.attempt('', until, () => inspector.queues())) ?? [];
    if (names.length > this.options.maxQueues) return this.readChosen(names, countByQueue(await servers), until);
    const queues = await this.readQueues([...names].sort(), until);
    return { queues, servers: countByQueue(await servers), leftOut: 0 };
  }

  private async readChosen(names: readonly string[], servers: Reading['servers'], until: number): Promise<States> {
    const served = new Set([...(servers?.keys() ?? []), ...this.options.served()]);
    const { exported, tried, leftOut } = this.choice.choose(names, served);
    const queues = await this.readQueues(exported, until);
    // Queues that are only tried may fail, and must not add labels to the errors.
    this.choice.learn([...queues, ...(await this.readQueues(tried, until, () => undefined))], served);
    return { queues, servers, leftOut };
  }

  private async readQueues(
    names: readonly string[],
    until: number,
    onError = this.options.onError,
  ): Promise<QueueInfo[]> {
    const infos = await mapConcurrent(names, this.options.concurrency, (name) =>
      this.attempt(name, until, () => this.options.inspector.getQueueInfo(name), onError),
    );
    return infos.filter((info) => info !== undefined);
  }

  /**
   * `undefined`, and reported, when it fails or takes too long; a queue that does not exist is not
   * reported.
   */
  private async attempt<T>(
    queue: string,
    until: number,
    ask: () => Promise<T>,
    onError = this.options.onError,
  ): Promise<T | undefined> {
    const { clock } = this.options;
    const left = until - clock.now();
    try {
      if (left > 0) return await withTimeout(ask(), left, clock, failTimedOut);
    } catch (error) {
      if (error instanceof QueueNotFoundError) return undefined;
    }
    onError(queue);
    return undefined;
  }
}

const failTimedOut = (): never => {
  throw new Error('not read in time');
};

function countByQueue(servers: Awaited<ReturnType<AsynqInspector['servers']>> | undefined) {
  if (!servers) return undefined;
  const counts = new Map<string, number>();
  for (const { status, queues } of servers) {
    if (status !== 'active') continue;
    for (const queue of Object.keys(queues)) counts.set(queue, (counts.get(queue) ?? 0) + 1);
  }
  return counts;
}
