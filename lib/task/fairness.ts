import { type ErrorClass, InvalidTaskError } from '../errors.js';
import { describe, isBlank, refuseBraces, rejectUnknownKeys, requireFunction, requireObject } from '../validation.js';
import { FAIRNESS_HEADER, type FairShare, fairnessText } from '../wire/fairness.js';
import { type RateLimit, resolveLimits } from './limits.js';

/** A value, or one for each key. */
type ByKey<T> = T | ((key: string) => T);

/** How tasks take turns in a fair queue (`queues: { name: { fairness: true } }`). In other queues it changes nothing. */
export interface FairnessOptions<P = unknown> {
  /**
   * Whose tasks take turns with those of others, such as a tenant: a text or number, at most 256 bytes, without braces. Called with the
   * payload when a task is enqueued; not asynchronous.
   */
  key(payload: P): string | number;
  /** How many tasks of a key run at a time in the whole fleet. Default: no limit. */
  concurrency?: ByKey<number | undefined>;
  /** How many tasks of a key start per time in the whole fleet: at most `max` in any period of `per`. Default: no limit. */
  rate?: ByKey<RateLimit | undefined>;
  /** Turns for each of a key of weight 1, from 0.001 to 1000. Default 1. */
  weight?: ByKey<number | undefined>;
}

/** What a call says of its turn. */
export interface FairnessOfCall {
  /** Whose tasks take turns with those of others in a fair queue, instead of what the definition says. Default: as the definition says, else no key. */
  fairnessKey?: string | number;
  /** Turns for each of a key of weight 1, from 0.001 to 1000. Default: as the definition says, else 1. */
  fairnessWeight?: number;
}

export const FAIRNESS_OF_CALL = ['fairnessKey', 'fairnessWeight'] as const satisfies readonly (keyof FairnessOfCall)[];

/** The header of a task with this payload. */
export type FairnessOf = (payload: unknown) => Readonly<Record<string, string>>;

const KNOWN: readonly (keyof FairnessOptions)[] = ['key', 'concurrency', 'rate', 'weight'];
const MAX_KEY_BYTES = 256;
const MIN_WEIGHT = 0.001;
const MAX_WEIGHT = 1_000;

/** @param what the owner, for messages. @throws InvalidTaskError */
export function readFairness(given: unknown, what: string): FairnessOptions {
  const name = `fairness of ${what}`;
  const options = requireObject(
    given,
    `${name}, as in { key: (row) => row.tenantId }`,
    InvalidTaskError,
  ) as FairnessOptions;
  rejectUnknownKeys(options, KNOWN, `option of ${name}:`, InvalidTaskError);
  requireFunction(options.key, `key of ${name}`, InvalidTaskError);
  const { concurrency, rate, weight } = options;
  resolveLimits(
    {
      ...(typeof concurrency !== 'function' && concurrency !== undefined && { globalConcurrency: concurrency }),
      ...(typeof rate !== 'function' && rate !== undefined && { rateLimit: rate }),
    },
    name,
    InvalidTaskError,
  );
  if (typeof weight !== 'function' && weight !== undefined) requireWeight(weight, `weight of ${name}`);
  return Object.freeze({ ...options });
}

/** @param options of the definition. @param what the task, for messages. @returns `undefined` for a task without a key */
export function fairnessOfKind(
  options: FairnessOptions | undefined,
  { fairnessKey, fairnessWeight }: FairnessOfCall,
  what: string,
): FairnessOf | undefined {
  if (fairnessWeight !== undefined) requireWeight(fairnessWeight, `fairnessWeight of ${what}`);
  if (fairnessKey !== undefined) {
    const header = headerOf(shareOf(options, requireKey(fairnessKey, `fairnessKey of ${what}`), fairnessWeight, what));
    return () => header;
  }
  if (!options) {
    if (fairnessWeight === undefined) return undefined;
    throw new InvalidTaskError(
      `${what} has fairnessWeight and no key; give fairnessKey, or its definition fairness: { key }`,
    );
  }
  let last: { readonly key: string; readonly header: Readonly<Record<string, string>> } | undefined;
  return (payload) => {
    const key = keyOf(options, payload, what);
    if (last?.key !== key) last = { key, header: headerOf(shareOf(options, key, fairnessWeight, what)) };
    return last.header;
  };
}

const headerOf = (share: FairShare): Readonly<Record<string, string>> => ({ [FAIRNESS_HEADER]: fairnessText(share) });

function keyOf(options: FairnessOptions, payload: unknown, what: string): string {
  let key: unknown;
  try {
    key = options.key(payload);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidTaskError(`the key of the fairness of ${what} threw: ${reason}`, { cause: error });
  }
  return requireKey(key, `the key of the fairness of ${what}`);
}

function shareOf(
  options: FairnessOptions | undefined,
  key: string,
  ownWeight: number | undefined,
  what: string,
): FairShare {
  const name = `fairness of ${what} for key ${describe(key)}`;
  const { globalConcurrency, rate, window } = resolveLimits(
    { ...limitOf('globalConcurrency', options?.concurrency, key), ...limitOf('rateLimit', options?.rate, key) },
    name,
    InvalidTaskError,
  );
  const given = ownWeight ?? forKey(options?.weight, key) ?? 1;
  return { key, weight: requireWeight(given, `weight of ${name}`), concurrency: globalConcurrency, rate, window };
}

function limitOf<K extends string, T>(name: K, given: ByKey<T>, key: string): { [N in K]?: NonNullable<T> } {
  const value = forKey(given, key);
  return (value === undefined ? {} : { [name]: value }) as { [N in K]?: NonNullable<T> };
}

const forKey = <T>(given: ByKey<T>, key: string): T =>
  typeof given === 'function' ? (given as (key: string) => T)(key) : given;

/** It becomes part of a key of Redis. */
export function requireKey(given: unknown, what: string, Failure: ErrorClass = InvalidTaskError): string {
  const key = typeof given === 'number' && Number.isFinite(given) ? String(given) : given;
  if (typeof key !== 'string') throw new Failure(`${what} must be a text or a number, not ${describe(given)}`);
  if (isBlank(key)) throw new Failure(`${what} is blank; give the name of a tenant, or the like`);
  const bytes = Buffer.byteLength(key);
  if (bytes > MAX_KEY_BYTES) {
    throw new Failure(`${what} has ${bytes} bytes, and may have ${MAX_KEY_BYTES}; give a hash of it`);
  }
  return refuseBraces(key, what, Failure);
}

function requireWeight(given: unknown, what: string): number {
  if (typeof given === 'number' && given >= MIN_WEIGHT && given <= MAX_WEIGHT) return given;
  throw new InvalidTaskError(`${what} must be a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}, not ${describe(given)}`);
}
