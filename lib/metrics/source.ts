import { BrokerUnavailableError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { ServerStats } from '../server/index.js';
import type { Reading, QueueReader } from './queue-reader.js';
import { Tally } from './tally.js';
import type { TaskTally } from './task-tally.js';

export interface MetricsSourceDeps {
  /** The name of the connection; the unnamed one has no label. */
  readonly connection: string | undefined;
  readonly events: AsynqEvents;
  readonly tasks: TaskTally;
  /** `undefined`: queues are not read. */
  readonly reader: QueueReader | undefined;
  readonly scrapeErrors: Tally;
  /** `undefined` without a server. */
  readonly stats: () => ServerStats | undefined;
  /** The rows of the outbox; `undefined` without one. Rejects when its database does not answer. */
  readonly outbox: () => Promise<OutboxRows> | undefined;
}

/** The rows of an outbox that have not ended. */
export interface OutboxRows {
  readonly fresh: number;
  readonly taken: number;
  readonly poisoned: number;
  /** Milliseconds. */
  readonly oldest: number;
}

/** What an outbox says at a scrape; `undefined`: its database does not answer. */
export interface OutboxReading {
  readonly rows: OutboxRows | undefined;
}

/** In the words of Prometheus. */
const OUTCOME_OF_WAIT = {
  released: 'released',
  cancelled: 'cancelled',
  timedOut: 'timed_out',
  revived: 'revived',
} as const;

const EMPTY_READING: Reading = { queues: [], servers: undefined, keys: [], leftOut: 0 };

/**
 * The source of all metrics of a connection: it counts events, and reads the server and Redis when
 * scraped.
 */
export class MetricsSource {
  readonly loopFailures = new Tally();
  readonly redisErrors = new Tally();
  readonly recovered = new Tally();
  readonly damaged = new Tally();
  readonly expired = new Tally();
  readonly newerPayloads = new Tally();
  readonly aggregations = new Tally();
  readonly aggregatedTasks = new Tally();
  readonly firings = new Tally();
  readonly loopBlocked = new Tally();
  readonly linkMessages = new Tally();
  readonly linkEnds = new Tally();
  readonly waits = new Tally();
  readonly runs = new Tally();
  readonly batches = new Tally();
  private outboxReading: Promise<OutboxReading | undefined> | undefined;
  private readonly ends: (() => void)[] = [];

  constructor(private readonly deps: MetricsSourceDeps) {}

  get connection(): string | undefined {
    return this.deps.connection;
  }

  /** Returns whether both count the same events. */
  countsSameEvents(other: MetricsSource): boolean {
    return this.deps.events === other.deps.events;
  }

  get tasks(): TaskTally {
    return this.deps.tasks;
  }

  get scrapeErrors(): Tally {
    return this.deps.scrapeErrors;
  }

  stats(): ServerStats | undefined {
    return this.deps.stats();
  }

  async read(): Promise<Reading> {
    return this.deps.reader ? this.deps.reader.read() : EMPTY_READING;
  }

  /** `undefined` without an outbox. One look for all metrics of a scrape. */
  async outbox(): Promise<OutboxReading | undefined> {
    const { outbox } = this.deps;
    this.outboxReading ??= Promise.resolve(outbox()).then(
      (rows) => rows && { rows },
      () => ({ rows: undefined }),
    );
    const reading = this.outboxReading;
    // Metrics of one scrape are read in one turn.
    void reading.finally(() => (this.outboxReading = undefined));
    return reading;
  }

  start(): void {
    const { events, tasks } = this.deps;
    this.ends.push(
      events.measureWaits(),
      events.on('taskFinished', (outcome) => tasks.record(outcome)),
      events.on('stepFinished', ({ task, ...step }) => tasks.recordStep(task, step)),
      events.on('taskDamaged', ({ task }) => this.damaged.add({ queue: task.queue })),
      events.on('payloadTooNew', ({ task }) => this.newerPayloads.add({ queue: task.queue })),
      events.on('taskExpired', ({ task, onExpiry }) =>
        this.expired.add({ queue: task.queue, outcome: onExpiry === 'drop' ? 'dropped' : 'archived' }),
      ),
      events.on('loopBlocked', ({ milliseconds }) => this.loopBlocked.add({}, milliseconds / 1000)),
      events.on('handlerStuck', ({ task }) => tasks.recordStuck(task)),
      events.on('tasksRecovered', ({ queue, retried, archived, suspects }) => {
        this.recovered.add({ queue, outcome: 'retried' }, retried);
        this.recovered.add({ queue, outcome: 'archived' }, archived - suspects);
        this.recovered.add({ queue, outcome: 'suspect' }, suspects);
      }),
    );
    this.watchRedis(events);
    this.watchGroups(events);
    this.watchScheduler(events);
    this.watchLinks(events);
  }

  stop(): void {
    for (const end of this.ends.splice(0)) end();
  }

  private watchRedis(events: AsynqEvents): void {
    const count = (source: string, error: unknown): void => {
      if (error instanceof BrokerUnavailableError) this.redisErrors.add({ source });
    };
    this.ends.push(
      events.on('loopFailed', ({ loop, error }) => {
        this.loopFailures.add({ loop });
        count(loop, error);
      }),
      events.on('enqueueFailed', ({ error }) => count('enqueue', error)),
      events.on('relayFailed', ({ error }) => count('relay', error)),
      events.on('queueUnreachable', () => this.redisErrors.add({ source: 'exchange' })),
      events.on('wakeUnavailable', () => this.redisErrors.add({ source: 'notices' })),
    );
  }

  private watchGroups(events: AsynqEvents): void {
    this.ends.push(
      events.on('groupAggregated', ({ queue, size }) => {
        this.aggregations.add({ queue, outcome: 'succeeded' });
        this.aggregatedTasks.add({ queue }, size);
      }),
      events.on('aggregationFailed', ({ queue }) => this.aggregations.add({ queue, outcome: 'failed' })),
    );
  }

  private watchLinks(events: AsynqEvents): void {
    const count = (outcome: string, messages: number): void => this.linkMessages.add({ outcome }, messages);
    this.ends.push(
      events.on('parcelsCarried', ({ parcels }) => count('carried', parcels)),
      events.on('relayFailed', ({ parcels }) => count('failed', parcels)),
      events.on('linksKept', ({ settled, parcels }) => {
        count('late', parcels);
        this.linkEnds.add({}, settled);
      }),
      events.on('waitEnded', ({ task, end }) => this.waits.add({ queue: task.queue, outcome: OUTCOME_OF_WAIT[end] })),
      events.on('workflowStarted', ({ queue }) => this.runs.add({ queue, outcome: 'started' })),
      events.on('workflowEnded', ({ queue, state }) => this.runs.add({ queue, outcome: state })),
      events.on('batchEnded', ({ queue, state }) => this.batches.add({ queue, outcome: state })),
    );
  }

  private watchScheduler(events: AsynqEvents): void {
    const count = (queue: string, outcome: string): void => this.firings.add({ queue, outcome });
    this.ends.push(
      events.on('periodicTaskEnqueued', ({ entry }) => count(entry.queue, 'enqueued')),
      events.on('periodicTaskSkipped', ({ entry, reason }) => count(entry.queue, reason)),
      events.on('periodicTaskFailed', ({ entry }) => count(entry.queue, 'failed')),
    );
  }
}
