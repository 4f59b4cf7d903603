import type { GroupsRole } from '../broker/groups.js';
import type { Clock, ClockTimer } from '../clock.js';

/** How long servers have to move a due task to its group: Go's forward every 5 s. */
const FORWARD_GRACE_MS = 6_000;
/** The shortest time between two listings of a queue. */
const MIN_LIST_INTERVAL_MS = 30_000;

/**
 * Lists the groups that delayed tasks of this process join. Our servers do so when they forward a
 * task; Go's do not, so this is for queues that only they serve.
 */
export class GroupReminder {
  /** When to list the groups of a queue, in milliseconds since the epoch. */
  private readonly dueAt = new Map<string, number>();
  private timer: ClockTimer | undefined;
  private closed = false;

  constructor(
    private readonly groups: Pick<GroupsRole, 'listDelayedGroups'>,
    private readonly clock: Clock,
  ) {}

  /** @param time when a task joins its group, in Unix seconds */
  note(queue: string, time: number): void {
    if (this.planListing(queue, time * 1000 + FORWARD_GRACE_MS)) this.arm();
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  /** Returns whether that is earlier than planned so far. */
  private planListing(queue: string, at: number): boolean {
    if (at >= (this.dueAt.get(queue) ?? Infinity)) return false;
    this.dueAt.set(queue, at);
    return true;
  }

  private arm(): void {
    this.timer?.cancel();
    if (this.closed || this.dueAt.size === 0) return;
    const next = Math.min(...this.dueAt.values());
    this.timer = this.clock.after(next - this.clock.now(), () => void this.listDue());
  }

  private async listDue(): Promise<void> {
    const now = this.clock.now();
    const due = [...this.dueAt].filter(([, at]) => at <= now).map(([queue]) => queue);
    for (const queue of due) this.dueAt.delete(queue); // a task noted during the call may be missed by it
    await Promise.all(due.map((queue) => this.list(queue, now + MIN_LIST_INTERVAL_MS)));
    this.arm();
  }

  /** @param earliest when to list again at the earliest, also when Redis is away */
  private async list(queue: string, earliest: number): Promise<void> {
    const next = await this.groups.listDelayedGroups(queue).catch(() => 0);
    if (next !== undefined) this.planListing(queue, Math.max(next * 1000 + FORWARD_GRACE_MS, earliest));
  }
}
