import { AsyncLocalStorage } from 'node:async_hooks';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import { ServerStateError } from '../errors.js';
import type { EnqueueTransactions, OutboxWriter, RowNotices } from '../transactions/enqueue-transactions.js';
import { NamedTransactions } from '../transactions/named-transactions.js';
import type { TransactionScope } from '../transactions/transactions.js';
import type { ResolvedOutboxOptions } from './options.js';
import { OutboxRelay } from './relay.js';
import { rowOf } from './row-codec.js';
import type { SenderDeps } from './sender.js';
import type { OutboxCounts, OutboxSender, PoisonedPage, PoisonedRow } from './store.js';

/** Poisoned rows of one transaction. */
const ROWS_AT_ONCE = 500;

/** What an outbox needs of a connection. */
export interface OutboxConnection extends SenderDeps {
  readonly transactions: EnqueueTransactions;
}

/** What the module needs of an outbox, which a test may replace. */
export interface OutboxOfModule extends Pick<AsynqOutbox, 'check'> {
  /** `undefined`: it has nothing to bring to Redis. */
  connect(connection: OutboxConnection): OutboxRelay | undefined;
}

/** The outbox of a connection: tasks as rows of the application's database. */
export class AsynqOutbox implements OutboxWriter {
  private readonly named = new NamedTransactions();
  /** The transaction that the option `transactions` sees around a call. */
  private seen: EnqueueTransactions['current'];
  private connected: OutboxRelay | undefined;
  /** Leaves the transaction: what begins after its commit must not find it around itself. */
  private readonly outside = AsyncLocalStorage.snapshot();

  constructor(private readonly options: ResolvedOutboxOptions) {}

  /**
   * Everything that `work` enqueues, until its promise settles, becomes rows of this transaction. For transactions that no
   * `transactions` option sees; what is enqueued in a transaction that this option sees begin within `work` is part of that one.
   * TypeORM, Knex and Sequelize tell of the commit, and PostgreSQL of the rows; elsewhere call {@link wake} after the commit, or
   * the relay finds them by its poll.
   *
   * @example
   * await dataSource.transaction((manager) => outbox.within(manager, () => this.signUp(manager, email)));
   *
   * @param tx what runs statements in it: an EntityManager, a client of `pg`, a connection of `mysql2/promise`,
   * a transaction of Drizzle, Kysely, Knex, Prisma or Sequelize
   * @throws ServerStateError before the application is initialized
   */
  within<T>(tx: unknown, work: () => T): T {
    if (!this.connected) throw notReady();
    const { store } = this.options;
    const afterCommit = (then: () => Promise<void>): void => store.afterCommit?.(tx, () => void then());
    return this.named.run({ tx, afterCommit }, this.seen?.(), work);
  }

  /**
   * Has the relay of this process look for rows now: after a commit that nobody has told it of. It does nothing
   * where `relay` is false. @throws ServerStateError before the application is initialized
   */
  wake(): void {
    this.outside(() => this.relay.nudge());
  }

  /** See {@link RowNotices}; `undefined` where `relay` is false. */
  get notices(): RowNotices | undefined {
    return this.options.relay ? this.connected?.notices : undefined;
  }

  /** What has not ended. @throws what the database throws */
  counts(): Promise<OutboxCounts> {
    return this.options.store.counts();
  }

  /**
   * Brings all rows that are committed to Redis, as far as it takes them, also where `relay` is false. For tests and
   * scripts. @throws what the database throws
   */
  drain(): Promise<void> {
    return this.relay.drain();
  }

  /** The senders of all relays, owned ones first: at most 100. @throws what the database throws */
  senders(): Promise<readonly OutboxSender[]> {
    return this.options.store.senders();
  }

  /** Rows that could not be read, by their ids. @throws what the database throws */
  poisoned({ after, limit = 100 }: Partial<PoisonedPage> = {}): Promise<readonly PoisonedRow[]> {
    return this.options.store.poisoned({ after, limit });
  }

  /**
   * Has the relay try poisoned rows once more: after an update that can read them, say. Returns how many.
   *
   * @param ids of rows. Default: all that are poisoned
   */
  async retryPoisoned(ids?: readonly number[]): Promise<number> {
    const { store } = this.options;
    let retried = 0;
    for (;;) {
      const some = await store.retryPoisoned(ROWS_AT_ONCE, ids?.slice(0, ROWS_AT_ONCE));
      retried += some;
      ids = ids?.slice(ROWS_AT_ONCE);
      if (ids ? ids.length === 0 : some < ROWS_AT_ONCE) break;
    }
    if (retried > 0) this.relay.nudge();
    return retried;
  }

  /** Deletes poisoned rows with their tasks. Returns how many. @throws what the database throws */
  async dropPoisoned(ids: readonly number[]): Promise<number> {
    let dropped = 0;
    for (let first = 0; first < ids.length; first += ROWS_AT_ONCE) {
      dropped += await this.options.store.dropPoisoned(ids.slice(first, first + ROWS_AT_ONCE));
    }
    return dropped;
  }

  /** @throws InvalidOptionError when the tables are missing. @internal */
  check(): Promise<void> {
    return this.options.store.check();
  }

  /** @internal */
  async write(scope: TransactionScope, tasks: readonly PreparedTask[]): Promise<void> {
    await this.options.store.insert(scope.tx, tasks.map(rowOf));
    scope.afterCommit(async () => this.wake());
  }

  /** Has the client of the connection write rows from now on. @internal */
  connect({ transactions, broker, relay, events }: OutboxConnection): OutboxRelay {
    const { current } = transactions;
    this.seen = current;
    transactions.current = () => this.named.innermost(current?.());
    transactions.outbox = this;
    this.connected = new OutboxRelay(this.options.store, { broker, relay, events }, this.options);
    return this.connected;
  }

  private get relay(): OutboxRelay {
    if (!this.connected) throw notReady();
    return this.connected;
  }
}

const notReady = (): ServerStateError =>
  new ServerStateError('the outbox is not ready before the application is initialized; await app.init() first');
