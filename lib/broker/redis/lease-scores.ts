import type { Lease } from '../broker.js';
import type { LeaseBoard } from './lease-board.js';

/**
 * The scores that prove a lease: the last one known to be written, and those of extensions without
 * a reply. The contract has room for one such (`renewing`), but while Redis is away several
 * extensions can be lost in a row, and any of them may have been the last to arrive.
 */
export class LeaseScores {
  private readonly doubtful = new WeakMap<Lease, number[]>();
  /** Where a thread extends leases, while there is one. */
  board: LeaseBoard | undefined;

  /**
   * Called before an extension is sent. Returns a function that undoes it if it was certainly not
   * sent: while Redis is away for hours there is a try every second, and each would leave a score.
   */
  beginRenewal(lease: Lease, expiresAt: number): () => void {
    const { renewing } = lease;
    if (renewing === expiresAt) return () => undefined;
    if (renewing !== undefined) this.doubt(lease, renewing);
    lease.renewing = expiresAt;
    this.board?.note(lease);
    return () => {
      if (lease.renewing === expiresAt) lease.renewing = this.doubtful.get(lease)?.pop();
    };
  }

  /** Called with the reply. A later extension may be under way, and stays recorded. */
  endRenewal(lease: Lease, expiresAt: number, kept: boolean): void {
    if (kept) lease.expiresAt = expiresAt;
    if (lease.renewing === expiresAt) lease.renewing = undefined;
    this.doubtful.delete(lease);
    this.board?.note(lease);
  }

  /**
   * For lua/shared/fence.lua: the accepted scores of each stretch of leases that share them, and
   * its length.
   */
  fences(leases: readonly Lease[]): string[] {
    if (this.board?.hasNews) this.learn(this.board);
    const fences: string[] = [];
    let first = 0;
    for (let i = 1; i <= leases.length; i++) {
      const lease = leases[i];
      if (lease !== undefined && this.isAlike(lease, leases[first]!)) continue;
      fences.push(this.scores(leases[first]!), String(i - first));
      first = i;
    }
    return fences;
  }

  /** What the thread has sent may have been written, whatever came back. */
  private learn(board: LeaseBoard): void {
    for (const [lease, confirmed, sent] of board.takeNews()) {
      const known = new Set([lease.renewing, ...(this.doubtful.get(lease) ?? [])]);
      const scores = [lease.expiresAt, ...sent].filter((score) => score !== confirmed && !known.has(score));
      if (confirmed > lease.expiresAt) lease.expiresAt = confirmed;
      for (const score of scores) if (score !== lease.expiresAt) this.doubt(lease, score);
      lease.renewing ??= this.doubtful.get(lease)?.pop();
    }
  }

  private isAlike(one: Lease, other: Lease): boolean {
    return one.renewing === undefined && other.renewing === undefined
      ? one.expiresAt === other.expiresAt
      : this.scores(one) === this.scores(other);
  }

  private doubt(lease: Lease, score: number): void {
    const older = this.doubtful.get(lease);
    if (older) older.push(score);
    else this.doubtful.set(lease, [score]);
  }

  private scores(lease: Lease): string {
    const { expiresAt, renewing } = lease;
    if (renewing === undefined) return String(expiresAt);
    return [expiresAt, renewing, ...(this.doubtful.get(lease) ?? [])].join();
  }
}
