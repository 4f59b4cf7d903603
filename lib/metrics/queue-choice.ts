import type { QueueInfo } from '../inspector/views.js';

/** How many queues without a server one reading tries, to find those with a backlog. */
const TRIED_PER_READING = 100;

/** The queues of one reading. */
export interface Choice {
  readonly exported: readonly string[];
  /** Read but not exported: those with waiting tasks are exported from the next reading on. */
  readonly tried: readonly string[];
  /** Queues that exist and are not exported. */
  readonly leftOut: number;
}

/**
 * Chooses which of too many queues are exported: those with servers, then those with waiting tasks,
 * then others by name. When there are more than `maxQueues`, each reading tries some of the others
 * in turn, to find a backlog that no server works on.
 */
export class QueueChoice {
  /** The queues without a server, with the number of tasks that waited when they were last read. */
  private readonly waiting = new Map<string, number>();
  private triedUpTo = '';

  constructor(private readonly maxQueues: number) {}

  choose(names: readonly string[], served: ReadonlySet<string>): Choice {
    const sorted = [...names].sort();
    const rank = (name: string): number => (served.has(name) ? Infinity : (this.waiting.get(name) ?? 0));
    // A stable sort: queues of one rank stay in the order of their names.
    const ranks = new Map(sorted.map((name) => [name, rank(name)]));
    const ranked = sorted.toSorted((a, b) => (ranks.get(a) === ranks.get(b) ? 0 : ranks.get(b)! - ranks.get(a)!));
    const exported = ranked.slice(0, this.maxQueues).sort();
    const others = ranked.slice(this.maxQueues).sort();
    return { exported, tried: this.nextOf(others), leftOut: others.length };
  }

  /** Remembers the tasks that wait in queues without a server. */
  learn(infos: readonly QueueInfo[], served: ReadonlySet<string>): void {
    for (const { queue, size, active, archived, completed } of infos) {
      const waiting = size - active - archived - completed;
      if (waiting > 0 && !served.has(queue)) this.waiting.set(queue, waiting);
      else this.waiting.delete(queue);
    }
    this.forgetLeast();
  }

  /** The next ones by name; after the last, the first again. */
  private nextOf(others: readonly string[]): string[] {
    const from = others.findIndex((name) => name > this.triedUpTo);
    const next = others.slice(Math.max(0, from), Math.max(0, from) + TRIED_PER_READING);
    this.triedUpTo = next.at(-1) ?? '';
    return next;
  }

  /** Remembers no more queues than can be exported. */
  private forgetLeast(): void {
    if (this.waiting.size <= this.maxQueues) return;
    const least = [...this.waiting].sort(([, a], [, b]) => b - a).slice(this.maxQueues);
    for (const [queue] of least) this.waiting.delete(queue);
  }
}
