import type { Keyspace } from '../../wire/keys.js';
import type { WakeListener } from '../broker.js';
import { type Command, TrackingConnection, type TrackingHooks } from './connection/tracking-connection.js';

/** The keys of one arming: `pending`, `paused` and the ring of a fair queue, or `scheduled` and `retry`. */
export type NoticeKind = 'pending' | 'delayed';

/** The queues of one Redis node that are armed, on a pair of connections made at the first arming. */
export class NodeNotices {
  private connection: Promise<TrackingConnection> | undefined;
  private opened: TrackingConnection | undefined;
  private readonly armed = new Set<string>();
  private placesArmed = false;
  /** Key name → queue and kind. */
  private readonly meanings = new Map<string, { kind: NoticeKind; queue: string }>();

  constructor(
    private readonly open: (hooks: TrackingHooks) => Promise<TrackingConnection>,
    private readonly keyspace: Keyspace,
    private readonly listener: Pick<WakeListener, 'onPending' | 'onDelayed' | 'onPlaces'>,
    /** Called when armed notices were lost. */
    private readonly onLost: () => void,
  ) {}

  /** Runs `commands` (reads of keys passed to {@link watch}) and arms the queues with them. */
  async arm(kind: NoticeKind, queues: readonly string[], commands: readonly Command[]): Promise<unknown[]> {
    const connection = await this.connect();
    // Armed before the read: a notice may overtake the reply on its own connection.
    for (const queue of queues) this.remember(kind, queue);
    return connection.read(commands);
  }

  /** Reads the list of places with links, and arms a notice of its next change. */
  async armPlaces(): Promise<unknown> {
    const connection = await this.connect();
    this.placesArmed = true;
    return (await connection.read([['SMEMBERS', this.keyspace.linked]]))[0];
  }

  /** Drops what is armed, without a call of the listener. */
  disarm(): void {
    this.armed.clear();
    this.placesArmed = false;
  }

  /** Does not wait for a connection that is being opened; that one closes when it is open. */
  async close(): Promise<void> {
    this.disarm();
    this.connection?.then((late) => late.close()).catch(() => undefined);
    await this.opened?.close();
  }

  private connect(): Promise<TrackingConnection> {
    if (this.connection) return this.connection;
    const opening = this.open({ onChanged: (keys) => this.notice(keys), onLost: () => this.lose() });
    this.connection = opening;
    opening.then(
      (connection) => (this.opened = connection),
      () => (this.connection = undefined),
    );
    return opening;
  }

  private lose(): void {
    this.connection = undefined;
    this.opened = undefined;
    if (this.armed.size > 0 || this.placesArmed) this.onLost();
  }

  private remember(kind: NoticeKind, queue: string): void {
    this.armed.add(`${kind} ${queue}`);
    const keys = this.keyspace.queue(queue);
    const names = kind === 'pending' ? [keys.pending, keys.paused, keys.fairRing] : [keys.scheduled, keys.retry];
    for (const name of names) this.meanings.set(name, { kind, queue });
  }

  private notice(keys: readonly string[] | undefined): void {
    if (this.placesArmed && (keys?.includes(this.keyspace.linked) ?? true)) {
      this.placesArmed = false;
      this.listener.onPlaces?.();
    }
    for (const key of keys ?? [...this.meanings.keys()]) {
      const meaning = this.meanings.get(key);
      if (!meaning || !this.armed.delete(`${meaning.kind} ${meaning.queue}`)) continue;
      if (meaning.kind === 'pending') this.listener.onPending(meaning.queue);
      else this.listener.onDelayed(meaning.queue);
    }
  }
}
