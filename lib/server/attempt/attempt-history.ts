import type { AttemptNote } from '../../broker/attempts.js';
import type { Clock } from '../../clock.js';
import {
  DeadlineExceededError,
  HandlerNotFoundError,
  LeaseExpiredError,
  TaskCanceledError,
  TaskCrashedError,
  TaskExpiredError,
  TaskUndoneError,
} from '../../errors.js';
import { encodeAttempt } from '../../task/attempts.js';
import { crashesOf } from '../../wire/crashes.js';
import type { ActiveTask } from './active-task.js';
import { errorText } from './error-text.js';

/** Characters; a longer text is cut. */
const MAX_ERROR = 1_000;
const MAX_STACK = 2_000;
/** What a stack says before its first line of code is the message once more. */
const MAX_HEAD = 200;
/** How many causes of an error are shown. */
const MAX_CAUSES = 3;

export interface AttemptHistoryOptions {
  readonly clock: Clock;
  /** `<host>:<pid>:<id>` */
  readonly server: string;
  /** How many attempts of a task are kept; 0: nothing is noted. */
  readonly most: number;
}

/** What an attempt leaves in the history of its task. It is stored with the outcome, in the same step. */
export class AttemptHistory {
  constructor(private readonly options: AttemptHistoryOptions) {}

  /** @param counts whether it uses a retry. @returns `undefined`: no history is kept, or this was no attempt that failed */
  failed(task: ActiveTask, error: unknown, counts: boolean): AttemptNote | undefined {
    if (this.options.most === 0) return undefined;
    // No attempt began; and what made it undo its steps was noted when it failed.
    if (error instanceof TaskExpiredError || error instanceof TaskUndoneError) return undefined;
    const text = cut(errorText(error), MAX_ERROR);
    if (isRecovered(error)) return this.crashed(task, text, counts);
    return this.ended(task, { outcome: 'failed', counts, error: text, stack: stackOf(error) });
  }

  /** A success is noted only beside failures: a task that succeeds at once has no history. */
  completed(task: ActiveTask): AttemptNote | undefined {
    if (this.options.most === 0 || task.message.lastFailedAt === 0) return undefined;
    return this.ended(task, { outcome: 'completed', counts: false, error: '', stack: undefined });
  }

  private ended(
    { startedAt, retried }: ActiveTask,
    end: { outcome: 'failed' | 'completed'; counts: boolean; error: string; stack: string | undefined },
  ): AttemptNote {
    const { clock, server } = this.options;
    const endedAt = clock.now();
    return this.note({ ...end, startedAt, endedAt, duration: Math.max(0, endedAt - startedAt), retried, server });
  }

  /** Whoever recovers a task knows no more than its last crash. */
  private crashed({ message, retried }: ActiveTask, error: string, counts: boolean): AttemptNote {
    const crash = crashesOf(message.headers)?.last.at(-1);
    return this.note({
      outcome: 'crashed',
      startedAt: undefined,
      endedAt: crash?.at ?? this.options.clock.now(),
      duration: undefined,
      retried,
      counts,
      server: crash?.servers.length === 1 ? crash.servers[0] : undefined,
      error,
      stack: undefined,
    });
  }

  private note(entry: Parameters<typeof encodeAttempt>[0]): AttemptNote {
    return { text: encodeAttempt(entry), most: this.options.most };
  }
}

/** Whether a recoverer has ended the attempt, whose server is gone. */
export const isRecovered = (error: unknown): boolean =>
  error instanceof LeaseExpiredError || error instanceof TaskCrashedError;

/** Errors that are made here, and not thrown by a handler: their stacks lead nowhere. */
const isOurs = (error: Error): boolean =>
  error instanceof DeadlineExceededError || error instanceof TaskCanceledError || error instanceof HandlerNotFoundError;

/** Stack of an error and of its causes; `undefined` when there is none. */
function stackOf(error: unknown): string | undefined {
  try {
    const stacks: string[] = [];
    for (let at = error; at instanceof Error && stacks.length <= MAX_CAUSES; at = at.cause) {
      const stack = isOurs(at) ? undefined : plainStack(at.stack);
      if (stack === undefined) break;
      stacks.push(stack);
    }
    return stacks.length === 0 ? undefined : cut(stacks.join('\ncaused by: '), MAX_STACK);
  } catch {
    return undefined; // anything may be thrown, also what throws when it is read
  }
}

const FIRST_LINE = /\n\s+at /;
const LINE = /\n\s+at /g;

/** Without a message that is longer than the stack, and without indentation. */
function plainStack(stack: unknown): string | undefined {
  if (typeof stack !== 'string') return undefined;
  const at = stack.search(FIRST_LINE);
  if (at < 0) return undefined;
  return cut(stack.slice(0, at), MAX_HEAD) + stack.slice(at, at + 2 * MAX_STACK).replace(LINE, '\nat ');
}

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
