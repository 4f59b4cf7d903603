import { TestingError } from '../errors.js';
import type { AsynqOutbox, OutboxOfModule } from '../outbox/index.js';
import type { EnqueueTransactions } from '../transactions/enqueue-transactions.js';
import { fakeTransactionOf } from './fake-data-source.js';
import { notInitialized } from './testing.messages.js';
import { TestTransactions } from './test-transactions.js';

/**
 * The outbox for tests without a database: a task is held in the process until the commit, and is on the {@link InMemoryBroker} after
 * it.
 *
 * @example
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(AsynqOutbox).useClass(InMemoryOutbox)
 */
export class InMemoryOutbox implements OutboxOfModule, Omit<AsynqOutbox, 'within' | 'write' | 'connect'> {
  private transactions: TestTransactions | undefined;

  /**
   * Everything that `work` enqueues is held until the commit of this transaction, when it is one of a {@link fakeDataSource}. Of others it
   * knows no end: they commit when `work` has succeeded, and roll back when it throws.
   *
   * @param tx the EntityManager that `transaction()` gives
   * @throws TestingError before the application is initialized
   */
  within<T>(tx: unknown, work: () => T | Promise<T>): T | Promise<T> {
    const { connected } = this;
    const transaction = fakeTransactionOf(tx);
    return transaction ? connected.within(transaction, work) : connected.run(work);
  }

  /** The tasks that wait for a commit are its rows. */
  async counts() {
    return { fresh: this.connected.tasks().length, taken: 0, poisoned: 0, oldest: 0 };
  }

  /** There is no relay. */
  readonly notices = undefined;

  wake(): void {}

  /** There is nothing to bring: a commit has done it. */
  async drain(): Promise<void> {}

  /** No relay brings rows. */
  async senders(): Promise<[]> {
    return [];
  }

  /** No row is poisoned. */
  async poisoned(): Promise<[]> {
    return [];
  }

  async retryPoisoned(): Promise<number> {
    return 0;
  }

  async dropPoisoned(): Promise<number> {
    return 0;
  }

  /** @internal */
  async check(): Promise<void> {}

  /** @internal */
  connect({ transactions }: { readonly transactions: EnqueueTransactions }): undefined {
    this.transactions = TestTransactions.of(transactions);
  }

  private get connected(): TestTransactions {
    if (!this.transactions) throw new TestingError(notInitialized);
    return this.transactions;
  }
}
