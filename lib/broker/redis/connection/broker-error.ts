import { AsynqError, BrokerUnavailableError, InvalidOptionError, WrongKeyTypeError } from '../../../errors.js';

/** Errors of calls that were rejected before anything was written to a socket. */
const neverSent = new WeakSet<Error>();

/** Programming errors. They are passed on as they are. */
const FAULTS = [TypeError, RangeError, ReferenceError, SyntaxError];

/** The messages with which ioredis itself refuses a command. */
const UNSENT = /^(Stream isn't writeable|Cluster isn't ready|Cluster is ended|Too many Cluster redirections)/;

/**
 * Replies of a server that cannot serve just now, and has done nothing. Redis 6 wraps them when a
 * script gets one.
 */
const TRANSIENT = /(^|-)(LOADING|READONLY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|MOVED|ASK) /;

/** Marks the error of a call that was never sent, for {@link wasSent}. */
export function markUnsent<T extends Error>(error: T): T {
  neverSent.add(error);
  return error;
}

/**
 * The border between the driver and everything above. The driver's errors (network, timeout, closed
 * connection, and refusals of Redis such as LOADING, READONLY, CLUSTERDOWN, OOM, NOAUTH) become
 * BrokerUnavailableError with the original as `cause`; WRONGTYPE, which is permanent, becomes
 * WrongKeyTypeError, and CROSSSLOT InvalidOptionError. Errors of this library, and programming
 * errors such as TypeError, stay as they are.
 *
 * @param what the operation, as in `enqueue`
 */
export function toBrokerError(error: unknown, what: string): Error {
  if (error instanceof AsynqError) return error;
  if (FAULTS.some((Fault) => error instanceof Fault)) return error as Error;
  const key = firstArgument(error);
  const cause = error instanceof Error ? withoutArguments(error) : error;
  const reason = cause instanceof Error ? reasonOf(cause) : String(cause);
  if (isReply(cause) && reason.startsWith('WRONGTYPE ')) return wrongType(what, key, cause);
  if (isReply(cause) && CROSS_SLOT.test(reason)) return crossSlot(what, cause);
  const wrapped = new BrokerUnavailableError(`${what}: Redis is unavailable: ${reason}`, { cause });
  return cause instanceof Error && isUnsent(cause) ? markUnsent(wrapped) : wrapped;
}

/**
 * Also for keys of one queue, when its name leaves their hash tag empty. Redis 7 has another text
 * for scripts.
 */
const CROSS_SLOT = /^CROSSSLOT |do not hash to the same slot/;

const crossSlot = (what: string, cause: unknown): InvalidOptionError =>
  new InvalidOptionError(
    `${what}: a cluster cannot keep this queue: it keeps together what has the same name in braces, and this name is empty or ` +
      'begins with a brace. Choose another name',
    { cause },
  );

function wrongType(what: string, key: string | undefined, cause: unknown): WrongKeyTypeError {
  const which = key === undefined ? '' : `: ${JSON.stringify(key)}`;
  return new WrongKeyTypeError(
    `${what}: a key does not hold what asynq keeps in it${which}. Find out what else writes to it, or set another keyPrefix`,
    { cause },
  );
}

/** The key of a single command. */
function firstArgument(error: unknown): string | undefined {
  const { args } = (error as { command?: { args?: unknown } } | null)?.command ?? {};
  const first: unknown = Array.isArray(args) ? args[0] : undefined;
  return typeof first === 'string' ? first : undefined;
}

/** ioredis' text for a lost connection names an option that the user has not set. */
function reasonOf(error: Error): string {
  if (error.name === 'MaxRetriesPerRequestError') return 'the connection was lost before an answer came';
  const remedy = isReply(error) ? REMEDIES.find(([reply]) => reply.test(error.message))?.[1] : undefined;
  return remedy === undefined ? error.message : `${error.message}; ${remedy}`;
}

/** For replies that last when the connection names the wrong server. */
const REMEDIES: readonly (readonly [reply: RegExp, remedy: string])[] = [
  [/^MOVED /, "this is a node of a cluster: give connection: { cluster: ['host:port'] }"],
  [/(^|-)READONLY /, 'this is a replica: give the address of its master, or sentinels'],
];

/**
 * Whether a failed call may have happened: it was written to a socket and got no reply. `false`
 * when it was certainly never sent, or when Redis returned an error, before which our scripts write
 * nothing.
 */
export function wasSent(error: unknown): boolean {
  return error instanceof Error && !isUnsent(error) && !(error.cause instanceof Error && isUnsent(error.cause));
}

/**
 * Whether the call was certainly not executed, for a reason that may be over soon (a failover, a
 * restart).
 */
export const isTransient = (error: unknown): boolean =>
  error instanceof Error && (isReply(error) ? TRANSIENT.test(error.message) : UNSENT.test(error.message));

const isUnsent = (error: Error): boolean => neverSent.has(error) || isReply(error) || UNSENT.test(error.message);

const CONSEQUENCE = /^(Connection is closed\.|Stream isn't writeable)/;

/** Of two errors of a connection the later one, unless it only says that the connection is gone. */
export const moreTelling = (earlier: Error | undefined, later: Error): Error =>
  earlier && CONSEQUENCE.test(later.message) ? earlier : later;

/**
 * Whether it is an error reply of Redis; checked by name, as there may be two copies of ioredis.
 */
export const isReply = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';

/**
 * ioredis keeps the arguments of a refused command with its error: passwords (AUTH, HELLO) and
 * whole payloads, which would get into logs. Only the name of the command stays.
 */
export function withoutArguments<T extends Error>(error: T): T {
  const { command } = error as { command?: { name?: unknown; args?: unknown } };
  if (command?.args !== undefined) Object.assign(error, { command: { name: command.name } });
  const { lastNodeError } = error as { lastNodeError?: unknown };
  if (lastNodeError instanceof Error) withoutArguments(lastNodeError);
  return error;
}
