import { InvalidOptionError } from '../errors.js';

/** A transaction of a database that is under way around a call. */
export interface TransactionScope {
  /** What runs statements in it: an EntityManager, the client of a driver, the `tx` of an adapter. */
  readonly tx: unknown;
  /**
   * Has `work` called after the commit, and not after a rollback, also one to a savepoint that was set
   * before this call. Whoever commits waits for it. It must not reject.
   */
  afterCommit(work: () => Promise<void>): void;
  /** No database is behind it: its tasks are held in the process, also where there is an outbox. Default false. */
  readonly inProcess?: boolean;
}

/** Returns what Nest has for a token. */
export type FindProvider = (token: never) => unknown;

/**
 * Imports a package that an application need not have.
 *
 * @param what names who needs it
 * @throws InvalidOptionError
 */
export async function loadPeer<T>(load: () => Promise<T>, what: string, name: string): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new InvalidOptionError(`${what} needs ${name}, which cannot be loaded; install it`, { cause });
  }
}

/** Finds the transaction around a call: `clsTransactions()`, `typeormTransactions()`, `sequelizeTransactions(…)`, or your own. */
export interface Transactions {
  /**
   * Called first: loads packages that are only there when they are used.
   *
   * @throws InvalidOptionError when one is missing
   */
  load?(): Promise<void>;
  /**
   * Called when all providers are there, before any other module's `onModuleInit`.
   *
   * @throws InvalidOptionError when what it builds on is not there
   */
  attach?(find: FindProvider): void;
  /** The transaction around this call; `undefined` when there is none. */
  current(): TransactionScope | undefined;
}

/** A TransactionScope that is notified of the end of its transaction. */
export class Scope implements TransactionScope {
  private works: (() => Promise<void>)[] = [];
  private over = false;
  private rolledBack = false;

  /**
   * @param txOf reads what runs statements
   * @param outer the transaction that this one is a savepoint of
   */
  constructor(
    private readonly txOf: () => unknown,
    readonly outer?: Scope,
  ) {}

  get tx(): unknown {
    return this.txOf();
  }

  /** Whether it has been committed or rolled back. */
  get ended(): boolean {
    return this.over;
  }

  /** Whether what it held will never be done. */
  get dropped(): boolean {
    return this.rolledBack || (this.outer?.dropped ?? false);
  }

  afterCommit(work: () => Promise<void>): void {
    this.works.push(work);
  }

  /** The work of a savepoint becomes that of the transaction around it. */
  async commit(): Promise<void> {
    const works = this.end();
    if (this.outer) this.outer.works.push(...works);
    else await Promise.allSettled(works.map((work) => work()));
  }

  rollback(): void {
    this.rolledBack = true;
    this.end();
  }

  private end(): (() => Promise<void>)[] {
    this.over = true;
    return this.works.splice(0);
  }
}
