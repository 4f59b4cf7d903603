import { AsyncLocalStorage } from 'node:async_hooks';
import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { type FindProvider, loadPeer, Scope, type Transactions, type TransactionScope } from './transactions.js';

export interface ClsTransactionsOptions {
  /** The `connectionName` of the plugin. Default: the plugin without one. */
  connectionName?: string;
}

type SetTx = (tx: unknown) => void;
type Body = () => Promise<unknown>;

/** What an adapter gives to the plugin. */
interface AdapterOptions {
  wrapWithTransaction: (options: unknown, body: Body, setTx: SetTx) => Promise<unknown>;
  wrapWithNestedTransaction?: (options: unknown, body: Body, setTx: SetTx, tx: unknown) => Promise<unknown>;
}

/** The part of TransactionHost that is used here. The package has no hook for the commit: `_options` is where one can be set. */
interface Host {
  readonly tx: unknown;
  isTransactionActive(): boolean;
  readonly _options: AdapterOptions;
}

/**
 * The transactions of `@nestjs-cls/transactional`, with any of its adapters.
 *
 * @example
 * AsynqModule.forRoot({ connection, transactions: clsTransactions() })
 *
 * @throws InvalidOptionError when an option is invalid; at boot when the plugin is not registered
 */
export function clsTransactions(options: ClsTransactionsOptions = {}): Transactions {
  requireObject(options, 'options of clsTransactions', InvalidOptionError);
  rejectUnknownKeys(options, ['connectionName'], 'option of clsTransactions', InvalidOptionError);
  const { connectionName } = options;
  if (connectionName !== undefined) {
    requireNonBlank(connectionName, 'clsTransactions option connectionName', InvalidOptionError);
  }
  return new ClsTransactions(connectionName);
}

class ClsTransactions implements Transactions {
  private readonly scopes = new AsyncLocalStorage<Scope>();
  private tokenOf: ((connectionName?: string) => unknown) | undefined;
  private host: Host | undefined;

  constructor(private readonly connectionName: string | undefined) {}

  async load(): Promise<void> {
    const load = () => import('@nestjs-cls/transactional');
    this.tokenOf = (await loadPeer(load, 'clsTransactions()', '@nestjs-cls/transactional')).getTransactionHostToken;
  }

  attach(find: FindProvider): void {
    const host = this.findHost(find);
    if (host === this.host) return;
    this.watch(host['_options'], host);
    this.host = host;
  }

  current(): TransactionScope | undefined {
    const scope = this.scopes.getStore();
    return scope && !scope.ended && this.host?.isTransactionActive() ? scope : undefined;
  }

  private findHost(find: FindProvider): Host {
    let host: Host;
    try {
      host = find(this.tokenOf!(this.connectionName) as never) as Host;
    } catch (cause) {
      const plugin = this.connectionName ? ` with the connectionName "${this.connectionName}"` : '';
      throw new InvalidOptionError(
        `AsynqModule option transactions is clsTransactions(), but there is no TransactionHost${plugin}; ` +
          'register the ClsPluginTransactional of @nestjs-cls/transactional in ClsModule',
        { cause },
      );
    }
    if (typeof host['_options']?.wrapWithTransaction === 'function') return host;
    throw new InvalidOptionError(
      'clsTransactions() does not know this version of @nestjs-cls/transactional; install version 3',
    );
  }

  private watch(adapter: AdapterOptions, host: Host): void {
    const { wrapWithTransaction: wrap, wrapWithNestedTransaction: wrapNested } = adapter;
    adapter.wrapWithTransaction = (options, body, setTx) =>
      this.run(new Scope(() => host.tx), body, (scoped) => wrap.call(adapter, options, scoped, setTx));
    if (!wrapNested) return;
    adapter.wrapWithNestedTransaction = (options, body, setTx, tx) => {
      const scope = new Scope(() => host.tx, this.scopes.getStore());
      return this.run(scope, body, (scoped) => wrapNested.call(adapter, options, scoped, setTx, tx));
    };
  }

  /** Resolves when what was to follow the commit is done. */
  private async run(scope: Scope, body: Body, begin: (scoped: Body) => Promise<unknown>): Promise<unknown> {
    let result: unknown;
    try {
      result = await begin(() => this.scopes.run(scope, body));
    } catch (error) {
      scope.rollback();
      throw error;
    }
    await scope.commit();
    return result;
  }
}
