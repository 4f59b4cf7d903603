import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../async.js';
import { Scope, type TransactionScope } from './transactions.js';

interface Named {
  readonly scope: TransactionScope;
  /** The transaction that was seen around the function. */
  readonly around: TransactionScope | undefined;
  /** What ran statements in that one then. */
  readonly aroundTx: unknown;
  /** The function is over. */
  ended: boolean;
}

/** Transactions that are named by hand, each for a function, beside those that are seen. */
export class NamedTransactions {
  private readonly named = new AsyncLocalStorage<Named>();

  /**
   * What `work` calls, until its promise settles, is in this transaction.
   *
   * @param around the transaction that is seen around the call
   */
  run<T>(scope: TransactionScope, around: TransactionScope | undefined, work: () => T): T {
    const named: Named = { scope, around, aroundTx: around?.tx, ended: false };
    const end = (): void => void (named.ended = true);
    const result = this.named.run(named, () => {
      try {
        return work();
      } catch (error) {
        end();
        throw error;
      }
    });
    if (isThenable(result)) result.then(end, end);
    else end();
    return result;
  }

  /**
   * The innermost transaction around a call. One that has begun within a function is nearer than the one that was named for it; so is
   * the lack of one, where what was seen around the function is left.
   *
   * @param seen the transaction that is seen around the call
   */
  innermost(seen: TransactionScope | undefined): TransactionScope | undefined {
    const named = this.named.getStore();
    return named && !named.ended && isAround(named, seen) ? named.scope : seen;
  }
}

/** Our own scopes are one object per transaction, whose `tx` is that of the call. Others may be made at each look. */
function isAround({ around, aroundTx }: Named, seen: TransactionScope | undefined): boolean {
  if (seen === around) return true;
  return seen !== undefined && around !== undefined && !(seen instanceof Scope) && seen.tx === aroundTx;
}
