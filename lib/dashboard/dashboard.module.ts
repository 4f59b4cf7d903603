import {
  type DynamicModule,
  Inject,
  Logger,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Optional,
  type Provider,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InvalidOptionError } from '../errors.js';
import { AsynqCoreModule } from '../nest/asynq-core.module.js';
import { ConnectionRegistry } from '../nest/connection/connection.registry.js';
import { notForRoot } from '../nest/names/nest.messages.js';
import { requireClosed } from './access.js';
import { type DashboardControllers, makeControllers } from './controllers.js';
import { Dashboard } from './dashboard.js';
import { openForDevelopment, twoAt } from './dashboard.messages.js';
import type {
  AsynqDashboardAsyncOptions,
  AsynqDashboardOptions,
  AsynqDashboardOptionsFactory,
  AsynqDashboardSettings,
} from './dashboard.options.js';
import { type ResolvedStatics, resolveAsyncStatics, resolveSettings, splitOptions } from './resolve-options.js';

const SETTINGS = 'ASYNQ_DASHBOARD_SETTINGS';
const FACTORY = 'ASYNQ_DASHBOARD_OPTIONS_FACTORY';
const CONTROLLERS = 'ASYNQ_DASHBOARD_CONTROLLERS';

/**
 * The web console of a connection: a page, and the REST API under it that scripts made for asynqmon know. An application can have
 * several, each with a path of its own.
 *
 * Closed by default: without `guards` and without `access` the application does not start, unless NODE_ENV is `development`.
 *
 * @example
 * AsynqDashboardModule.forRoot({ path: '/asynq', guards: [AdminGuard], access: ({ user }) => (isAdmin(user) ? 'destroy' : 'view') })
 */
@Module({})
export class AsynqDashboardModule implements NestModule {
  constructor(
    @Optional() @Inject(CONTROLLERS) private readonly controllers: DashboardControllers | null,
    private readonly host: HttpAdapterHost,
  ) {
    if (!controllers) throw new InvalidOptionError(notForRoot('AsynqDashboardModule'));
  }

  /** @throws InvalidOptionError for a wrong option, at once */
  static forRoot(options: AsynqDashboardOptions = {}): DynamicModule {
    const [statics, settings] = splitOptions(options);
    resolveSettings(settings);
    return define(statics, [{ provide: SETTINGS, useValue: settings }]);
  }

  /**
   * Takes the settings from a factory or a class, and `path`, `connection`, `guards`, `imports` and
   * `version` beside it.
   *
   * @throws InvalidOptionError
   */
  static forRootAsync(options: AsynqDashboardAsyncOptions): DynamicModule {
    return define(resolveAsyncStatics(options), settingsProviders(options));
  }

  /** When Nest calls this hook, the platform is known and no route exists yet. */
  configure(_consumer: MiddlewareConsumer): void {
    this.controllers!.route(this.host);
  }
}

function define(statics: ResolvedStatics, providers: Provider[]): DynamicModule {
  const controllers = makeControllers(statics);
  return {
    module: AsynqDashboardModule,
    imports: [...statics.imports, AsynqCoreModule],
    controllers: [controllers.api, controllers.page],
    providers: [
      ...providers,
      { provide: CONTROLLERS, useValue: controllers },
      {
        provide: Dashboard,
        useFactory: (registry: ConnectionRegistry, settings: AsynqDashboardSettings) =>
          makeDashboard(registry, statics, settings),
        inject: [ConnectionRegistry, SETTINGS],
      },
    ],
  };
}

function makeDashboard(
  registry: ConnectionRegistry,
  { path, connection, guards, version }: ResolvedStatics,
  settings: AsynqDashboardSettings,
): Dashboard {
  claim(registry, path, version);
  const resolved = resolveSettings(settings);
  const open = requireClosed(path, guards, resolved.access, process.env.NODE_ENV);
  if (open) new Logger('AsynqDashboard').warn(openForDevelopment(path));
  return new Dashboard(registry, connection, resolved, path, open);
}

/** The paths of all consoles, by application. */
const places = new WeakMap<ConnectionRegistry, Set<string>>();

/** Two consoles at one path would hide each other. @throws InvalidOptionError */
function claim(application: ConnectionRegistry, path: string, version: ResolvedStatics['version']): void {
  const taken = places.get(application) ?? new Set();
  places.set(application, taken);
  for (const place of [version ?? ''].flat().map((each) => `${path} ${each}`)) {
    if (taken.has(place)) throw new InvalidOptionError(twoAt(path));
    taken.add(place);
  }
}

function settingsProviders({ useFactory, inject = [], useClass, useExisting }: AsynqDashboardAsyncOptions): Provider[] {
  if (useFactory) return [{ provide: SETTINGS, useFactory: useFactory as (...args: unknown[]) => unknown, inject }];
  const factory = useExisting ?? FACTORY;
  const settings: Provider = {
    provide: SETTINGS,
    useFactory: (made: AsynqDashboardOptionsFactory) => made.createAsynqDashboardOptions(),
    inject: [factory],
  };
  return useClass ? [{ provide: FACTORY, useClass }, settings] : [settings];
}
