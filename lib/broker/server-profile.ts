/** The limits of a handler or a queue, as a server publishes them. What is left out is not limited. */
export interface PublishedLimits {
  /** Tasks at a time in one process. */
  readonly concurrency?: number;
  /** Tasks at a time in the fleet. */
  readonly globalConcurrency?: number;
  /** Starts per `window`, in milliseconds, in the fleet. */
  readonly rate?: number;
  readonly window?: number;
  /** Whether tasks cost something else than 1 of `rate`. */
  readonly costs?: true;
}

/** A handler, as a server publishes it. */
export interface HandlerProfile extends PublishedLimits {
  /** A type, or the beginning of types. */
  readonly pattern: string;
  /** The newest version of payloads it knows. Left out: 1. */
  readonly version?: number;
  /** Where its limits count. Left out: it has none. */
  readonly scope?: string;
  /** Whether they hold per key: each key counts in a scope of its own, `<scope>:<key>`. */
  readonly keyed?: true;
}

/** What a server of ours publishes beside asynq's ServerInfo, which has no room for it. */
export interface ServerProfile {
  readonly handlers: readonly HandlerProfile[];
  /** The limits of its queues that have some. */
  readonly queues: Readonly<Record<string, PublishedLimits>>;
  /** Whether it aggregates groups. */
  readonly aggregates: boolean;
}

/** `undefined` for bytes that are no profile: of a release that writes it in another way. */
export function decodeProfile(bytes: Buffer | string): ServerProfile | undefined {
  try {
    const { handlers, queues, aggregates } = JSON.parse(String(bytes)) as ServerProfile;
    const isProfile = Array.isArray(handlers) && handlers.every(({ pattern }) => typeof pattern === 'string');
    return isProfile && typeof queues === 'object' && queues !== null
      ? { handlers, queues, aggregates: aggregates === true }
      : undefined;
  } catch {
    return undefined;
  }
}
