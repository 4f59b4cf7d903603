import { type Clock, SystemClock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { WakeListener, WakeSource } from '../broker.js';
import { FairQueues } from '../fair-queues.js';
import type { RedisConnections } from './connection/connections.js';
import type { Command } from './connection/tracking-connection.js';
import { readScore } from './scripts/arguments.js';
import { TrackedReads } from './tracked-reads.js';

/** The keys of one arming: `pending`, `paused` and the ring of a fair queue, or `scheduled` and `retry`. */
type NoticeKind = 'pending' | 'delayed';

/**
 * Wake-ups by one-shot `CLIENT TRACKING`, for changes by any client.
 *
 * A notice may arrive before its arming has resolved.
 */
export class RedisWakeSource implements WakeSource {
  private readonly reads: TrackedReads;
  /** What is armed (kind and queue), and on which node. */
  private readonly armed = new Map<string, string>();
  private placesArmedOn: string | undefined;
  /** Key name → queue and kind. */
  private readonly meanings = new Map<string, { kind: NoticeKind; queue: string }>();

  constructor(
    connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly listener: WakeListener,
    clock: Clock = new SystemClock(),
    private readonly fairQueues = new FairQueues(),
  ) {
    const hooks = {
      onChanged: (node: string, keys: readonly string[] | undefined) => this.notice(node, keys),
      onLost: (node: string) => this.lose(node),
    };
    this.reads = new TrackedReads(connections, hooks, clock);
  }

  /** @throws WakeUpRefusedError (at once, for a minute after each refusal), BrokerUnavailableError, ClosedError */
  async armPending(queues: readonly string[]): Promise<Map<string, number>> {
    const replies = await this.arm('pending', queues, (queue) => {
      const { pending, paused, fairRing } = this.keyspace.queue(queue);
      const reads: Command[] = [
        ['LLEN', pending],
        ['EXISTS', paused],
      ];
      if (this.fairQueues.has(queue)) reads.push(['ZCARD', fairRing]);
      return reads;
    });
    const backlog = ([pending, paused, keys = 0]: unknown[]): number =>
      paused === 0 ? Number(pending) + Number(keys) : 0;
    return new Map(queues.map((queue, index) => [queue, backlog(replies[index]!)]));
  }

  /** @throws as {@link armPending} */
  async armDelayed(queues: readonly string[]): Promise<number | undefined> {
    const replies = await this.arm('delayed', queues, (queue) => {
      const { scheduled, retry } = this.keyspace.queue(queue);
      return [scheduled, retry].map((key): Command => ['ZRANGE', key, 0, 0, 'WITHSCORES']);
    });
    const scores = replies.flatMap((sets) => sets.flatMap((set) => (set as string[]).slice(1).map(readScore)));
    return scores.length > 0 ? Math.min(...scores) : undefined;
  }

  /** @throws as {@link armPending} */
  async armPlaces(): Promise<string[]> {
    const { linked } = this.keyspace;
    const read = { key: linked, commands: [['SMEMBERS', linked] satisfies Command] };
    const [replies] = await this.reads.read([read], (node) => (this.placesArmedOn = node));
    return replies![0] as string[];
  }

  async close(): Promise<void> {
    this.disarm();
    await this.reads.close();
  }

  /** The replies of each queue, in order. */
  private arm(
    kind: NoticeKind,
    queues: readonly string[],
    commandsOf: (queue: string) => Command[],
  ): Promise<unknown[][]> {
    const reads = queues.map((queue) => ({ key: this.keyspace.queue(queue).pending, commands: commandsOf(queue) }));
    return this.reads.read(reads, (node, indexes) => {
      for (const index of indexes) this.remember(kind, queues[index]!, node);
    });
  }

  private remember(kind: NoticeKind, queue: string, node: string): void {
    this.armed.set(`${kind} ${queue}`, node);
    const keys = this.keyspace.queue(queue);
    const names = kind === 'pending' ? [keys.pending, keys.paused, keys.fairRing] : [keys.scheduled, keys.retry];
    for (const name of names) this.meanings.set(name, { kind, queue });
  }

  private notice(node: string, keys: readonly string[] | undefined): void {
    if (this.placesArmedOn === node && (keys?.includes(this.keyspace.linked) ?? true)) {
      this.placesArmedOn = undefined;
      this.listener.onPlaces?.();
    }
    for (const key of keys ?? [...this.meanings.keys()]) {
      const meaning = this.meanings.get(key);
      if (!meaning) continue;
      const name = `${meaning.kind} ${meaning.queue}`;
      if (this.armed.get(name) !== node) continue;
      this.armed.delete(name);
      if (meaning.kind === 'pending') this.listener.onPending(meaning.queue);
      else this.listener.onDelayed(meaning.queue);
    }
  }

  /** The contract has one loss for all nodes: reported once, however many connections fail. */
  private lose(node: string): void {
    if (this.placesArmedOn !== node && ![...this.armed.values()].includes(node)) return;
    this.disarm();
    this.reads.learnNodes();
    this.listener.onLost();
  }

  private disarm(): void {
    this.armed.clear();
    this.placesArmedOn = undefined;
  }
}
