import { AsynqError, BrokerUnavailableError, InvalidOptionError, WrongKeyTypeError } from '../../../errors.js';

/** Errors of calls that were given up before anything was written to a socket. */
const neverSent = new WeakSet<Error>();

/** Errors that are not Redis' doing but a fault in a program; they are passed on as they are. */
const FAULTS = [TypeError, RangeError, ReferenceError, SyntaxError];

/** What ioredis says when it refuses a command by itself. */
const UNSENT = /^(Stream isn't writeable|Cluster isn't ready|Cluster is ended|Too many Cluster redirections)/;

/** Replies of a server that cannot serve just now, given in place of doing anything. Redis 6 wraps them when a script meets one. */
const TRANSIENT = /(^|-)(LOADING|READONLY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|MOVED|ASK) /;

/** Marks a call as never sent: {@link wasSent} will say so. */
export function markUnsent<T extends Error>(error: T): T {
  neverSent.add(error);
  return error;
}

/**
 * The border between the driver and everything above: its errors (network, timeout, closed connection, and whatever Redis
 * answers instead of doing it: LOADING, READONLY, CLUSTERDOWN, OOM, NOAUTH …) become BrokerUnavailableError with the
 * original as `cause`; WRONGTYPE, which does not pass, a WrongKeyTypeError, and CROSSSLOT an InvalidOptionError. Errors of this library, and faults such as a TypeError, stay what they are.
 *
 * @param what what was to be done, as in `enqueue`
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

/** Of one queue, too, where its name leaves the hash tag of its keys empty. Redis 7 has words of its own for scripts. */
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

/** Of a single command the key. */
function firstArgument(error: unknown): string | undefined {
  const { args } = (error as { command?: { args?: unknown } } | null)?.command ?? {};
  const first: unknown = Array.isArray(args) ? args[0] : undefined;
  return typeof first === 'string' ? first : undefined;
}

/** ioredis' own words for a lost connection speak of an option that is none of the user's. */
const reasonOf = (error: Error): string =>
  error.name === 'MaxRetriesPerRequestError' ? 'the connection was lost before an answer came' : error.message;

/**
 * Whether a failed call may nevertheless have happened: it was written to a socket and no answer came. `false` when it
 * was certainly never sent, or when Redis answered with an error, before which our scripts write nothing.
 */
export function wasSent(error: unknown): boolean {
  return error instanceof Error && !isUnsent(error) && !(error.cause instanceof Error && isUnsent(error.cause));
}

/** Whether the call was certainly not carried out, for a reason that may be gone in a moment (a failover, a restart). */
export const isTransient = (error: unknown): boolean =>
  error instanceof Error && (isReply(error) ? TRANSIENT.test(error.message) : UNSENT.test(error.message));

const isUnsent = (error: Error): boolean => neverSent.has(error) || isReply(error) || UNSENT.test(error.message);

const REFUSED_LOGIN = /^(NOAUTH|WRONGPASS) /;

/** Whether Redis answered, and wants another user or password. */
export const isRefusedLogin = (error: unknown): boolean =>
  error instanceof Error && isReply(error) && REFUSED_LOGIN.test(error.message);

/** Whether it is an error reply of Redis; by name, for there may be two copies of ioredis. */
export const isReply = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError';

/**
 * ioredis keeps the arguments of a refused command with its error: passwords (AUTH, HELLO) and whole payloads, which
 * would end in logs. Only the name of the command stays.
 */
export function withoutArguments<T extends Error>(error: T): T {
  const { command } = error as { command?: { name?: unknown; args?: unknown } };
  if (command?.args !== undefined) Object.assign(error, { command: { name: command.name } });
  const { lastNodeError } = error as { lastNodeError?: unknown };
  if (lastNodeError instanceof Error) withoutArguments(lastNodeError);
  return error;
}
