import { AsyncLocalStorage } from 'node:async_hooks';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { EnqueueTransactions } from '../transactions/enqueue-transactions.js';
import { NamedTransactions } from '../transactions/named-transactions.js';
import { Scope, type TransactionScope } from '../transactions/transactions.js';

/** Tasks that wait for the commit of a transaction. */
interface Held {
  readonly scope: TransactionScope & { readonly dropped?: boolean };
  readonly tasks: readonly PreparedTask[];
}

/** A transaction without a database. */
class TestScope extends Scope {
  readonly inProcess = true;
}

/** Transactions of one connection that begin and end with a function, and what all of its transactions hold. */
export class TestTransactions {
  private static readonly byConnection = new WeakMap<EnqueueTransactions, TestTransactions>();
  private readonly scopes = new AsyncLocalStorage<TestScope>();
  private readonly named = new NamedTransactions();
  private readonly held = new Set<Held>();
  /** What the application's option `transactions` sees around a call. */
  private readonly seen: EnqueueTransactions['current'];

  private constructor(transactions: EnqueueTransactions) {
    this.seen = transactions.current;
    transactions.current = () => {
      const [outer, inner] = [this.current(), this.named.innermost(this.seen?.())];
      return outer && inner ? joined(inner as Scope, outer) : (outer ?? inner);
    };
    transactions.onHold = (scope, tasks) => {
      const held = { scope, tasks };
      this.held.add(held);
      scope.afterCommit(async () => void this.held.delete(held));
    };
  }

  /** The same for each tester and outbox of a connection. */
  static of(transactions: EnqueueTransactions): TestTransactions {
    let known = this.byConnection.get(transactions);
    if (!known) this.byConnection.set(transactions, (known = new TestTransactions(transactions)));
    return known;
  }

  /** Commits when `work` has succeeded, and rolls back when it throws. Inside another one it is a savepoint. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const scope = new TestScope(() => undefined, this.current());
    let result: T;
    try {
      result = await this.scopes.run(scope, work);
    } catch (error) {
      scope.rollback();
      throw error;
    }
    await scope.commit();
    return result;
  }

  /** What `work` enqueues is part of a transaction that ends elsewhere. */
  within<T>(scope: Scope, work: () => T): T {
    return this.named.run(scope, this.seen?.(), work);
  }

  /** The tasks that wait for a commit, in the order of the calls. */
  tasks(): PreparedTask[] {
    for (const held of this.held) if (held.scope.dropped) this.held.delete(held);
    return [...this.held].flatMap(({ tasks }) => tasks);
  }

  private current(): TestScope | undefined {
    const scope = this.scopes.getStore();
    return scope && !scope.ended ? scope : undefined;
  }
}

/** A transaction of the application in one of the test: its commit leaves the tasks to the outer one. */
const joined = (inner: Scope, outer: TestScope): TransactionScope & { readonly dropped: boolean } => ({
  tx: undefined,
  inProcess: true,
  get dropped() {
    return inner.dropped || outer.dropped;
  },
  afterCommit: (work) => inner.afterCommit(async () => outer.afterCommit(work)),
});
