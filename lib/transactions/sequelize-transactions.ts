import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import { type FindProvider, Scope, type Transactions, type TransactionScope } from './transactions.js';

export interface SequelizeTransactionsOptions {
  /** The token that Nest has the Sequelize under: with `@nestjs/sequelize` the class `Sequelize`, or `getConnectionToken(name)`. */
  token: unknown;
}

/** The part of a transaction of Sequelize that is used here. */
interface Transaction {
  /** The transaction that this one is a savepoint of. */
  readonly parent?: Transaction | undefined;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

interface Namespace {
  get(name: 'transaction'): Transaction | null | undefined;
}

/**
 * The managed transactions of Sequelize 6 with `Sequelize.useCLS(namespace)`.
 *
 * @example
 * AsynqModule.forRoot({ connection, transactions: sequelizeTransactions({ token: Sequelize }) })
 *
 * @throws InvalidOptionError when an option is invalid; at boot when there is no such Sequelize, or it has no namespace
 */
export function sequelizeTransactions(options: SequelizeTransactionsOptions): Transactions {
  requireObject(options, 'options of sequelizeTransactions', InvalidOptionError);
  rejectUnknownKeys(options, ['token'], 'option of sequelizeTransactions', InvalidOptionError);
  const { token } = options;
  if (token === undefined) throw new InvalidOptionError('sequelizeTransactions needs the option token');
  return new SequelizeTransactions(token);
}

class SequelizeTransactions implements Transactions {
  private readonly scopes = new WeakMap<Transaction, Scope>();
  private namespace: Namespace | undefined;

  constructor(private readonly token: unknown) {}

  attach(find: FindProvider): void {
    this.namespace = namespaceOf(this.find(find));
  }

  current(): TransactionScope | undefined {
    const transaction = this.namespace?.get('transaction');
    if (!transaction) return undefined;
    const scope = this.scopeOf(transaction);
    return scope.ended ? undefined : scope;
  }

  private find(find: FindProvider): object {
    try {
      return find(this.token as never) as object;
    } catch (cause) {
      throw new InvalidOptionError(
        `AsynqModule option transactions is sequelizeTransactions(), but Nest has no provider of its token; export it from its module`,
        { cause },
      );
    }
  }

  private scopeOf(transaction: Transaction): Scope {
    const known = this.scopes.get(transaction);
    if (known) return known;
    const scope = new Scope(() => transaction, transaction.parent && this.scopeOf(transaction.parent));
    this.scopes.set(transaction, scope);
    watch(transaction, scope);
    return scope;
  }
}

/** Sequelize calls its `afterCommit` also when a commit has failed, and has nothing for a rollback. */
function watch(transaction: Transaction, scope: Scope): void {
  const { commit, rollback } = transaction;
  transaction.commit = async () => {
    try {
      await commit.call(transaction);
    } catch (error) {
      scope.rollback();
      throw error;
    }
    await scope.commit();
  };
  transaction.rollback = async () => {
    scope.rollback();
    await rollback.call(transaction);
  };
}

function namespaceOf(sequelize: object): Namespace {
  const namespace = (sequelize.constructor as unknown as Readonly<Record<string, unknown>>)['_cls'];
  if (typeof (namespace as Namespace | undefined)?.get === 'function') return namespace as Namespace;
  throw new InvalidOptionError(
    'AsynqModule option transactions is sequelizeTransactions(), but its transactions cannot be seen; ' +
      'call Sequelize.useCLS(namespace) before the Sequelize is made',
  );
}
