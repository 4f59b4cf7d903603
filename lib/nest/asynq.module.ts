import {
  Inject,
  Module,
  Optional,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import { logEvents } from '../logging/log.js';
import { nestLogger } from './nest-logger.js';
import { rejectUnknownKeys, requireNonBlank } from '../validation.js';
import { ASYNC_OPTIONS_TYPE, ConfigurableModuleClass, OPTIONS_TYPE } from './asynq-module.definition.js';
import {
  EXTRAS,
  wrongOption,
  type AsynqModuleExtras,
  type AsynqModuleOptions,
} from './connection/asynq-module.options.js';
import { AsynqCoreModule } from './asynq-core.module.js';
import type { Connection } from './connection/connection.registry.js';
import { CONNECTION } from './connection/connection.tokens.js';
import { moveInHookOrder } from './lifecycle/hook-order.js';
import { noOptionsSource, notForRoot, optionsMissing } from './names/nest.messages.js';
import { closeConnection } from './lifecycle/server.orchestrator.js';
import { EventListeners } from './lifecycle/event.listeners.js';

/** What the compiler shows of a factory that returns what is no option. */
export interface UnknownOptions<Names> {
  readonly 'these are no options of AsynqModule': Names;
}

/** The compiler checks a literal for unknown keys, but not what a function without a return type returns. */
type Known<Options> = 0 extends 1 & Options
  ? unknown
  : [UnknownNames<Options>] extends [never]
    ? unknown
    : UnknownOptions<UnknownNames<Options>>;

type UnknownNames<Options> = Options extends unknown
  ? {
      [Name in keyof Options]-?: Name extends keyof AsynqModuleOptions ? never : OwnName<Options[Name], Name>;
    }[keyof Options]
  : never;

/** A factory may return an instance of a class, and methods are no options. */
type OwnName<Value, Name> = Value extends (...given: never) => unknown ? never : Name;

type Injected = Parameters<NonNullable<(typeof ASYNC_OPTIONS_TYPE)['useFactory']>>;

/** What `forRootAsync` takes; `Options` is what the factory returns, or resolves to. */
export type AsynqModuleAsyncOptions<Options = AsynqModuleOptions> = Omit<typeof ASYNC_OPTIONS_TYPE, 'useFactory'> & {
  useFactory?: ((...injected: Injected) => Options | Promise<Options>) & Known<Options>;
};

const SOURCES = ['useFactory', 'useClass', 'useExisting'];
const ASYNC_KEYS = [...SOURCES, 'imports', 'inject', 'provideInjectionTokensFrom', ...EXTRAS];

/**
 * One connection to a Redis with asynq tasks: its client, and the server that runs the application's `@TaskHandler` methods.
 *
 * If there are handlers, the server starts in `onApplicationBootstrap`, after that of every other module. It shuts down in
 * `onModuleDestroy`, before that of every other module: it stops fetching, waits for running handlers up to `shutdownTimeout`,
 * aborts the others and requeues their tasks. Handlers and shutdown hooks can enqueue until the end: client and connections
 * close in `onApplicationShutdown`, after that of every other module.
 */
@Module({ imports: [AsynqCoreModule] })
export class AsynqModule extends ConfigurableModuleClass implements OnApplicationShutdown, OnModuleInit {
  constructor(
    @Optional() @Inject(CONNECTION) private readonly connection: Connection,
    modules: ModulesContainer,
    private readonly ref: ModuleRef,
    private readonly listeners: EventListeners,
  ) {
    super();
    if (!connection) throw new InvalidOptionError(notForRoot('AsynqModule'));
    logEvents(connection.events, nestLogger(connection.name), connection.redactor);
    moveInHookOrder(modules, AsynqModule, 'starts first, stops last');
  }

  /** @throws InvalidOptionError at once for a wrong extra (name, isGlobal …), at boot for every other wrong option */
  static override forRoot(options: typeof OPTIONS_TYPE): DynamicModule {
    requireOptions(options, 'forRoot');
    return super.forRoot(options);
  }

  /** Takes the options from a factory or a class, with `name` and `isGlobal` beside it. @throws InvalidOptionError */
  static override forRootAsync<O extends AsynqModuleOptions = AsynqModuleOptions>(
    options: AsynqModuleAsyncOptions<O>,
  ): DynamicModule {
    requireOptions(options, 'forRootAsync');
    const what = 'AsynqModule.forRootAsync option';
    rejectUnknownKeys(options, ASYNC_KEYS, what, InvalidOptionError, FOREIGN.async);
    if (!SOURCES.some((source) => source in options)) throw new InvalidOptionError(noOptionsSource);
    return super.forRootAsync(options);
  }

  /** Runs before the hooks of every other module, which may enqueue. */
  onModuleInit(): void {
    this.listeners.attach(this.connection);
    this.connection.options.transactions?.attach?.((token) => this.ref.get(token, { strict: false }));
  }

  async onApplicationShutdown(): Promise<void> {
    await closeConnection(this.connection);
  }
}

function requireOptions(options: AsynqModuleExtras | undefined, method: string): void {
  if (typeof options !== 'object' || options === null) throw new InvalidOptionError(optionsMissing(method));
  const { name, isGlobal = false, extraProviders = [] } = options;
  if (name !== undefined) requireNonBlank(name, 'AsynqModule option name', InvalidOptionError);
  if (typeof isGlobal !== 'boolean') throw wrongOption('isGlobal', isGlobal, 'true or false');
  if (!Array.isArray(extraProviders)) throw wrongOption('extraProviders', extraProviders, 'an array');
}
