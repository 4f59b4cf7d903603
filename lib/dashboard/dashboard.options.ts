import type { CanActivate, InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import type { Duration } from '../duration.js';
import type { Redaction } from '../redaction/rules.js';
import type { DashboardAccess } from './access.js';
import type { DashboardActor } from './audit/actor.js';
import type { PayloadDecoder } from './payload/decoders.js';

/** A guard class, which Nest instantiates, or an instance. */
export type DashboardGuard = Type<CanActivate> | CanActivate;

/**
 * The options that Nest needs before any factory runs. In `forRootAsync` they stand beside
 * `useFactory`.
 */
export interface AsynqDashboardStatics {
  /** The path of the console, below the global prefix of the application. Default `/asynq`. */
  path?: string;
  /** The `name` of the AsynqModule whose queues it shows. Default: the unnamed one. */
  connection?: string;
  /**
   * Guards of all routes of the console, including the page: classes or instances. They run after
   * the application's own guards. Default: none.
   */
  guards?: readonly DashboardGuard[];
  /** Modules that export the dependencies of the guards and of the `forRootAsync` factory. Default: none. */
  imports?: ModuleMetadata['imports'];
  /** The version of its routes in a versioned application. Default: neutral to versions. */
  version?: string | string[];
}

/** The options of `forRoot` besides AsynqDashboardStatics; a factory returns them. */
export interface AsynqDashboardSettings {
  /**
   * What users of the console may do: `'view'`, `'act'` (also run, archive, cancel, enqueue …) or
   * `'destroy'` (also delete); or a function of the request that returns one of them, or
   * `undefined` for no access (403). Default: `'destroy'` for everyone whom the `guards` admit.
   * Without guards the application does not start, unless NODE_ENV is `development`.
   */
  access?: DashboardAccess;
  /**
   * Names the sender of a change for the audit trail. Default (also if it returns nothing or
   * throws): the name of `request.user` (`username`, `email`, `preferred_username`, `name`, `sub` or
   * `id`), else the address of the sender.
   */
  actor?: DashboardActor;
  /**
   * How many changes the audit trail keeps in Redis, about: 100 to 50,000. Default 10,000, which
   * takes a few megabytes.
   */
  auditLength?: number;
  /** Whether to refuse every change (405), whatever the role. Default false. */
  readOnly?: boolean;
  /**
   * Rules that hide parts of tasks, in addition to the option `redact` of AsynqModule. Default:
   * none.
   */
  redact?: Redaction;
  /**
   * Whether to hide fields and headers with names of secrets in every task: {@link
   * DEFAULT_REDACTION}. Default true.
   */
  defaultRedaction?: boolean;
  /**
   * Decoders for payloads and results that are not JSON, in the order of trial. Default: JSON only.
   */
  decoders?: readonly PayloadDecoder[];
  /** How often the page polls, and how long a reply is reused, 250ms to 1h. Default 2 s. */
  refresh?: Duration;
  /**
   * The address of a Prometheus with asynq's metrics, for the history of queues:
   * `http://prometheus:9090`. Default: none.
   */
  prometheus?: string;
  /** The title of the page. Default `Asynq`. */
  title?: string;
  /**
   * Trusted origins besides the console's own, such as `https://ops.example.com`. Needed behind a
   * proxy that changes the Host header. Default: none.
   */
  trustedOrigins?: readonly string[];
  /** Characters of a payload shown in a list. Default 200. */
  maxPayloadLength?: number;
  /** Characters of a result shown in a list. Default 200. */
  maxResultLength?: number;
}

/**
 * The options of `AsynqDashboardModule.forRoot`. All are optional, but `guards` or `access` must
 * say who may come in.
 */
export interface AsynqDashboardOptions extends AsynqDashboardStatics, AsynqDashboardSettings {}

/** Implemented by a class for `useClass` or `useExisting`. */
export interface AsynqDashboardOptionsFactory {
  createAsynqDashboardOptions(): Promise<AsynqDashboardSettings> | AsynqDashboardSettings;
}

/** The options of `AsynqDashboardModule.forRootAsync`: one of the three sources of settings. */
export interface AsynqDashboardAsyncOptions extends AsynqDashboardStatics {
  /** Called with the providers that `inject` names. */
  useFactory?: (...args: never[]) => Promise<AsynqDashboardSettings> | AsynqDashboardSettings;
  inject?: (InjectionToken | OptionalFactoryDependency)[];
  useClass?: Type<AsynqDashboardOptionsFactory>;
  useExisting?: Type<AsynqDashboardOptionsFactory>;
}
