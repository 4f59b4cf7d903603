import { InvalidHandlerError } from '../../errors.js';
import { resolveLimits, type ResolvedLimits } from '../../task/limits.js';
import { settleAll } from '../../async.js';
import type { TaskHandlerEntry } from './handler.js';
import { Limiter } from './limiter.js';
import type { LimiterDeps } from './waitlist.js';

/** Between two searches for waiting tasks that nobody here knows of. */
const SEARCH_INTERVAL_MS = 2_000;

/** The limiters of a server: one per scope. */
export class Limiters {
  private readonly byScope = new Map<string, Limiter>();
  private readonly byEntry = new Map<TaskHandlerEntry, Limiter>();

  /**
   * @throws InvalidHandlerError for wrong limits, or handlers that share a scope and differ in
   * their limits
   */
  constructor(
    entries: Iterable<TaskHandlerEntry>,
    private readonly deps: LimiterDeps,
  ) {
    for (const entry of entries) {
      if (!entry.limits) continue;
      const scope = entry.limits.limitScope ?? entry.pattern;
      const limits = resolveLimits(entry.limits, `handler "${entry.pattern}"`, InvalidHandlerError);
      let limiter = this.byScope.get(scope);
      if (!limiter) this.byScope.set(scope, (limiter = new Limiter(scope, limits, deps)));
      else requireEqual(limiter.limits, limits, scope, entry.pattern);
      if (entry.cost) limiter.hasCosts = true;
      this.byEntry.set(entry, limiter);
    }
  }

  get size(): number {
    return this.byScope.size;
  }

  /** The limiter a task of this handler has to pass. */
  of(entry: TaskHandlerEntry): Limiter | undefined {
    return this.byEntry.get(entry);
  }

  /** One pass. Tokens are extended though a queue cannot be asked what waits in it. */
  async runOnce(): Promise<number> {
    const { broker, queues } = this.deps;
    const waiting = new Map<string, string[]>();
    const search = async (queue: string) => {
      for (const scope of await broker.limiting.usedWaitlists(queue)) {
        if (this.byScope.has(scope)) waiting.set(scope, [...(waiting.get(scope) ?? []), queue]);
      }
    };
    const [failed] = (await Promise.allSettled(queues.names().map(search))).filter(
      ({ status }) => status === 'rejected',
    );
    await settleAll([...this.byScope.values()].map((limiter) => limiter.runOnce(waiting.get(limiter.scope) ?? [])));
    if (failed) throw (failed as PromiseRejectedResult).reason;
    return SEARCH_INTERVAL_MS;
  }

  /** Wakes waiting tasks now, as far as there may be room, where no loop does. */
  async findRoom(): Promise<void> {
    await settleAll([...this.byScope.values()].map((limiter) => limiter.findRoom()));
  }

  /** When a rate has room again for which tasks wait, in milliseconds since the epoch; `undefined` when none waits. */
  nextRoom(): number | undefined {
    const times = [...this.byScope.values()].flatMap((limiter) => limiter.nextRoom() ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  close(): void {
    for (const limiter of this.byScope.values()) limiter.close();
  }
}

function requireEqual(known: ResolvedLimits, given: ResolvedLimits, scope: string, pattern: string): void {
  const names = ['concurrency', 'globalConcurrency', 'rate', 'window'] as const;
  const other = names.find((name) => known[name] !== given[name]);
  if (!other) return;
  throw new InvalidHandlerError(
    `handler "${pattern}" limits scope "${scope}" otherwise than another handler does (${other} ${given[other]}, not ${known[other]}); ` +
      'give all handlers of a scope the same limits, or each a limitScope of its own',
  );
}
