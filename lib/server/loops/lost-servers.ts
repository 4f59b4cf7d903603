import { type Lease, LEASE_SECONDS, RECOVERY_GRACE_SECONDS } from '../../broker/broker.js';
import type { LostServer, MonitoringRole } from '../../broker/monitoring.js';
import { floorSeconds, type Clock } from '../../clock.js';
import type { Crash } from '../../wire/crashes.js';

/** Between two claims or extensions of the leases of a server, at most. */
const EXTENSION_SECONDS = 15;
/** Between two heartbeats, with what they may be late. */
const HEARTBEAT_SECONDS = 7;
/** How many names a crash has. */
const MOST_SERVERS = 3;

export interface LostServersOptions {
  readonly broker: { readonly monitoring: Pick<MonitoringRole, 'lostServers'> };
  readonly clock: Clock;
}

/** Finds out where tasks have run that lost their leases, and what else has lost its lease with them. */
export class LostServers {
  /** By queue: when the leases ended of tasks that were recovered lately, by id. */
  private readonly recent = new Map<string, Map<string, number>>();

  constructor(private readonly options: LostServersOptions) {}

  /**
   * @param leases those that are recovered now, of one queue
   * @param ending how many others have ended so lately that they are recovered later
   */
  async crashesOf(queue: string, leases: readonly Lease[], ending: number): Promise<Omit<Crash, 'at'>[]> {
    if (leases.length === 0) return [];
    const ends = this.remember(queue, leases);
    const lost = await this.options.broker.monitoring.lostServers().catch((): LostServer[] => []);
    return leases.map(({ expiresAt }) => {
      const seenAt = expiresAt - LEASE_SECONDS;
      const servers = lost
        .filter(({ at }) => at >= seenAt - HEARTBEAT_SECONDS && at <= seenAt + EXTENSION_SECONDS)
        .map(({ host, pid }) => `${host}:${pid}`);
      const beside = ends.filter((end) => Math.abs(end - expiresAt) <= EXTENSION_SECONDS).length - 1;
      return { servers: servers.slice(0, MOST_SERVERS), others: beside + ending };
    });
  }

  /** Those that ended much earlier were of other servers. */
  private remember(queue: string, leases: readonly Lease[]): readonly number[] {
    const known = this.recent.get(queue) ?? new Map<string, number>();
    const oldest = floorSeconds(this.options.clock.now()) - RECOVERY_GRACE_SECONDS - 2 * EXTENSION_SECONDS;
    for (const [id, end] of known) if (end < oldest) known.delete(id);
    for (const { id, expiresAt } of leases) known.set(id, expiresAt);
    this.recent.set(queue, known);
    return [...known.values()];
  }
}
