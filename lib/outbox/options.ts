import { type Duration, parseDuration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import type { RelayOptions } from './relay.js';
import type { OutboxStore } from './store.js';
import { hasMethods } from './stores/methods.js';

export interface AsynqOutboxOptions {
  /** Where the rows are: `typeormOutbox(dataSource)`, `pgOutbox(pool)`, or one of their kind. */
  store: OutboxStore;
  /** The `name` of the AsynqModule whose tasks these are. Default: the one without a name. */
  connection?: string;
  /** Whether this process brings rows to Redis. Several may; at least one must. Default true. */
  relay?: boolean;
  /**
   * How often the relay looks for rows without a notice, at most 10 s. With PostgreSQL it has a notice of all
   * rows, with other databases of those of its own process. Default `'1s'`.
   */
  pollInterval?: Duration;
  /** How long rows are kept as proof after Redis has got their tasks. Default `'1d'`. */
  retention?: Duration;
}

export interface ResolvedOutboxOptions extends RelayOptions {
  readonly store: OutboxStore;
  readonly connection: string | undefined;
  readonly relay: boolean;
}

const NAMES = ['store', 'connection', 'relay', 'pollInterval', 'retention'] as const;

const MAX_POLL_MS = 10_000;

/** @throws InvalidOptionError naming the option, its value and the remedy */
export function resolveOutboxOptions(options: AsynqOutboxOptions): ResolvedOutboxOptions {
  requireObject(options, 'AsynqOutboxModule options', InvalidOptionError);
  rejectUnknownKeys(options, NAMES, 'AsynqOutboxModule option', InvalidOptionError);
  const { store, connection, relay = true, pollInterval = '1s', retention = '1d' } = options;
  if (!hasMethods(store, ['insert', 'exchange'])) {
    throw wrong('store', store, 'a store, such as typeormOutbox(dataSource) or pgOutbox(pool)');
  }
  if (connection !== undefined) requireNonBlank(connection, 'AsynqOutboxModule option connection', InvalidOptionError);
  if (typeof relay !== 'boolean') throw wrong('relay', relay, 'true or false');
  const poll = parseDuration(pollInterval, 'AsynqOutboxModule option pollInterval');
  if (!(poll >= 1 && poll <= MAX_POLL_MS)) throw wrong('pollInterval', pollInterval, 'from 1 ms to 10 s');
  const keep = parseDuration(retention, 'AsynqOutboxModule option retention');
  if (!(keep >= 0 && Number.isFinite(keep))) throw wrong('retention', retention, 'a duration');
  return { store, connection, relay, pollInterval: poll, retention: keep };
}

const wrong = (name: string, value: unknown, expected: string): InvalidOptionError =>
  new InvalidOptionError(`AsynqOutboxModule option ${name} must be ${expected}, not ${describe(value)}`);
