import type { ClockTimer } from '../../clock.js';
import type { ActiveTask } from './active-task.js';
import type { Tokens } from './tokens.js';
import type { LimiterDeps } from './waitlist.js';

/** No task waits here for its token longer: others may have free ones. */
const MAX_READY_MS = 250;

/** A claimed task that waits for the decision. */
export interface Arrival {
  readonly task: ActiveTask;
  readonly decide: (admitted: boolean) => void;
}

/** One that waits here for a token. */
interface Ready extends Arrival {
  /** By `Clock.elapsed`. */
  readonly since: number;
}

/** For whom tasks are kept ready. */
export interface ReadyUser {
  /** Tasks that may still run in this process. */
  readonly room: number;
  /** They wait here no longer, and do not run. */
  dropped(task: ActiveTask): void;
  /** One has waited for long: handlers take longer than they did. */
  waitedLong(): void;
}

/** Claimed tasks of one scope that wait here for the next token, without a slot. */
export class ReadyTasks {
  private tasks: Ready[] = [];
  private timer: ClockTimer | undefined;

  constructor(
    private readonly tokens: Tokens,
    private readonly deps: Pick<LimiterDeps, 'clock' | 'listener'>,
    private readonly user: ReadyUser,
  ) {}

  get size(): number {
    return this.tasks.length;
  }

  /** It begins when a task ends here. */
  keep(task: ActiveTask): Promise<boolean> {
    return new Promise((decide) => {
      this.tasks.push({ task, decide, since: this.deps.clock.elapsed() });
      this.deps.listener.slotsTaken(-1);
      this.timer ??= this.deps.clock.after(MAX_READY_MS, () => this.endWait());
    });
  }

  /** A spare token lets the next task begin at once. */
  handOn(): void {
    for (let [next] = this.tasks; next && this.user.room > 0 && this.tokens.give(next.task); [next] = this.tasks) {
      this.tasks.shift();
      this.deps.listener.slotsTaken(1);
      next.decide(true);
    }
  }

  drop(): void {
    for (const { task, decide } of this.tasks.splice(0)) {
      this.user.dropped(task);
      this.deps.listener.slotsTaken(1);
      decide(false);
    }
  }

  close(): void {
    this.timer?.cancel();
  }

  /** Who has waited for long goes back to its waitlist, and the others with it. */
  private endWait(): void {
    this.timer = undefined;
    const [first] = this.tasks;
    if (!first) return;
    const left = first.since + MAX_READY_MS - this.deps.clock.elapsed();
    if (left > 0) this.timer = this.deps.clock.after(left, () => this.endWait());
    else {
      this.user.waitedLong();
      this.drop();
    }
  }
}
