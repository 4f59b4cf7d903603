import type { Lease } from '../broker.js';

/**
 * The scores that prove a lease: the one known to be written last, and those of extensions whose reply was never seen. The
 * contract has room for one such (`renewing`), but when Redis stays away several extensions can be lost in a row, and any of
 * them may have been the last to arrive.
 */
export class LeaseScores {
  private readonly doubtful = new WeakMap<Lease, number[]>();

  /** Called before an extension is sent. */
  beginRenewal(lease: Lease, expiresAt: number): void {
    const { renewing } = lease;
    if (renewing !== undefined && renewing !== expiresAt) {
      const older = this.doubtful.get(lease);
      if (older) older.push(renewing);
      else this.doubtful.set(lease, [renewing]);
    }
    lease.renewing = expiresAt;
  }

  /** Called when the reply has come. */
  endRenewal(lease: Lease, expiresAt: number, kept: boolean): void {
    if (kept) lease.expiresAt = expiresAt;
    lease.renewing = undefined;
    this.doubtful.delete(lease);
  }

  /** For scripts (lua/shared/fence.lua): the accepted scores of stretches of leases that have them in common. */
  fences(leases: readonly Lease[]): string {
    let fences = '';
    let first = 0;
    for (let i = 1; i <= leases.length; i++) {
      const lease = leases[i];
      if (lease !== undefined && this.isAlike(lease, leases[first]!)) continue;
      fences += `${fences === '' ? '' : ' '}${this.scores(leases[first]!)}*${i - first}`;
      first = i;
    }
    return fences;
  }

  private isAlike(one: Lease, other: Lease): boolean {
    return one.renewing === undefined && other.renewing === undefined
      ? one.expiresAt === other.expiresAt
      : this.scores(one) === this.scores(other);
  }

  private scores(lease: Lease): string {
    const { expiresAt, renewing } = lease;
    if (renewing === undefined) return String(expiresAt);
    return [expiresAt, renewing, ...(this.doubtful.get(lease) ?? [])].join();
  }
}
