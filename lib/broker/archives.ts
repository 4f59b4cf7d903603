/** How much the archive of a queue keeps. */
export interface ArchiveLimit {
  /** Infinity: any number. */
  readonly maxTasks: number;
  /** Seconds; Infinity: for ever. */
  readonly maxAge: number;
}

/** Go keeps one less than the 10,000 it names (wire-protocol section 4.12), for 90 days. */
const DEFAULT_ARCHIVE_LIMIT: ArchiveLimit = { maxTasks: 9_999, maxAge: 90 * 86_400 };

/** The limits of the archives, by queue; asynq's where none are set. */
export class Archives {
  private readonly limits = new Map<string, ArchiveLimit>();

  of(queue: string): ArchiveLimit {
    return this.limits.get(queue) ?? DEFAULT_ARCHIVE_LIMIT;
  }

  set(queue: string, limit: ArchiveLimit): void {
    this.limits.set(queue, limit);
  }
}
