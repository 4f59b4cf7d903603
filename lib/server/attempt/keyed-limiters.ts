import { hasCode } from '../../error-code.js';
import { AsynqError, InvalidLimitKeyError, SkipRetry } from '../../errors.js';
import { scopeOfKey } from '../../task/limit-key.js';
import type { ResolvedLimits } from '../../task/limits.js';
import type { ActiveTask } from './active-task.js';
import { Limiter } from './limiter.js';
import type { StartAllowance } from './start-allowance.js';
import type { LimiterDeps } from './waitlist.js';

/** Limiters that nobody uses are looked for when there are this many more than twice what was left the last time. */
const MAX_UNUSED = 1_000;
/** Keys that are known only because tasks wait: no more looks for room than theirs can be had in ten seconds. Each takes some 4 KB. */
const MAX_IDLE = 2_000;

/** The limiters of one scope whose limits hold per key: one for each key that runs, or is known to wait, here. */
export class KeyedLimiters {
  hasCosts = false;
  private readonly byKey = new Map<string, Limiter>();
  private readonly byTask = new Map<ActiveTask, Limiter>();
  private usedBefore = 0;
  private closed = false;

  constructor(
    readonly scope: string,
    readonly limits: ResolvedLimits,
    private readonly deps: LimiterDeps,
    private readonly allowance: StartAllowance,
  ) {}

  /** The limiter of the key of a task; or why it has no key. */
  of(task: ActiveTask): Limiter | AsynqError {
    try {
      const limiter = this.limiterOf(task.handler!.limitKey!(task));
      this.byTask.set(task, limiter);
      return limiter;
    } catch (error) {
      return refusal(error, task.type);
    }
  }

  left(task: ActiveTask): void {
    const limiter = this.byTask.get(task);
    if (!limiter) return;
    this.byTask.delete(task);
    limiter.left(task);
  }

  /** That of a waitlist; `undefined` for one that is none of a key of this scope. */
  named(waitlist: string): Limiter | undefined {
    const prefix = scopeOfKey(this.scope, '');
    return waitlist.startsWith(prefix) ? this.limiterOf(waitlist.slice(prefix.length)) : undefined;
  }

  /** Whether a waitlist is of a key of this scope of which nothing is known here. */
  isNew(waitlist: string): boolean {
    const prefix = scopeOfKey(this.scope, '');
    return waitlist.startsWith(prefix) && !this.byKey.has(waitlist.slice(prefix.length));
  }

  /**
   * How many more keys may become known by a search. With too many, those that have had their look for room are forgotten, and what comes
   * after the first of the others: searches find them again.
   */
  makeRoom(): number {
    const idle = [...this.byKey].filter(([, { isIdle }]) => isIdle);
    if (idle.length < MAX_IDLE) return MAX_IDLE - idle.length;
    let kept = 0;
    for (const [key, limiter] of idle) {
      if (kept < MAX_IDLE && !limiter.hasLooked) {
        kept++;
        continue;
      }
      limiter.close();
      this.byKey.delete(key);
    }
    return MAX_IDLE - kept;
  }

  /** Those that are in use; the others are forgotten. */
  used(): Iterable<Limiter> {
    for (const [key, limiter] of this.byKey) {
      if (limiter.isUsed) continue;
      limiter.close();
      this.byKey.delete(key);
    }
    this.usedBefore = this.byKey.size;
    return this.byKey.values();
  }

  close(): void {
    this.closed = true;
    for (const limiter of this.byKey.values()) limiter.close();
  }

  private limiterOf(key: string): Limiter {
    const known = this.byKey.get(key);
    if (known) return known;
    if (this.byKey.size >= 2 * this.usedBefore + MAX_UNUSED) this.used();
    const limiter = new Limiter(scopeOfKey(this.scope, key), this.limits, this.deps, this.allowance);
    limiter.hasCosts = this.hasCosts;
    if (this.closed) limiter.close();
    else this.byKey.set(key, limiter);
    return limiter;
  }
}

/** What a task without a key fails with. */
function refusal(error: unknown, type: string): AsynqError {
  if (hasCode(error, 'ASYNQ_INVALID_LIMIT_KEY')) {
    return new InvalidLimitKeyError((error as Error).message, { cause: new SkipRetry() });
  }
  if (error instanceof AsynqError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new InvalidLimitKeyError(`limitBy of task "${type}" threw: ${reason}`, { cause: new SkipRetry() });
}
