import type { QueueInfo } from '../inspector/views.js';

/** Queues that nobody serves which one reading tries, to find those with a backlog. */
const TRIED_AT_ONCE = 100;

/** What one reading reads. */
export interface Choice {
  readonly exported: readonly string[];
  /** Read and not exported: those with waiting tasks are exported from the next reading on. */
  readonly tried: readonly string[];
  /** Queues that exist and are not exported. */
  readonly leftOut: number;
}

/**
 * Which of too many queues are exported: first those that servers serve, then those with waiting tasks, then others by name. Where
 * there are more than `maxQueues`, each reading tries some of the others in turn, so that a backlog nobody works on is found.
 */
export class QueueChoice {
  /** Queues that nobody serves, with the number of tasks that waited when they were last read. */
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

  /** Remembers what waits where nobody serves. */
  learn(infos: readonly QueueInfo[], served: ReadonlySet<string>): void {
    for (const { queue, size, active, archived, completed } of infos) {
      const waiting = size - active - archived - completed;
      if (waiting > 0 && !served.has(queue)) this.waiting.set(queue, waiting);
      else this.waiting.delete(queue);
    }
    this.forgetLeast();
  }

  /** The next ones by name, from the first again after the last. */
  private nextOf(others: readonly string[]): string[] {
    const from = others.findIndex((name) => name > this.triedUpTo);
    const next = others.slice(Math.max(0, from), Math.max(0, from) + TRIED_AT_ONCE);
    this.triedUpTo = next.at(-1) ?? '';
    return next;
  }

  /** No more are remembered than can be exported. */
  private forgetLeast(): void {
    if (this.waiting.size <= this.maxQueues) return;
    const least = [...this.waiting].sort(([, a], [, b]) => b - a).slice(this.maxQueues);
    for (const [queue] of least) this.waiting.delete(queue);
  }
}
