import { Processes } from './chaos.js';
import type { StepsSettings } from './steps-process.js';

/** What an order does outside, in this order; one that is sold out takes back what is behind. */
const FORTH = ['capture', 'invoice', 'row0', 'row1', 'row2', 'reserve'];
const BACK = ['release', 'refund'];

/** A process that is killed has done what it did up to so many milliseconds before somebody says so. */
const SLACK_MS = 3_000;

/** Listens to clients and servers of steps-process.ts, and judges what they say. */
export class StepsJudge extends Processes {
  private readonly placed = new Set<string>();
  /** By order and effect: when. */
  private readonly effects = new Map<string, Map<string, number[]>>();
  private readonly kills: number[] = [];

  constructor(settings: StepsSettings) {
    super('./steps-process.ts', settings);
  }

  get orders(): number {
    return this.placed.size;
  }

  /** How many orders are sold out, which archives their tasks. */
  get soldOut(): number {
    return [...this.placed].filter((id) => id.endsWith('x')).length;
  }

  /** How often an effect came again. */
  get repeats(): number {
    const all = [...this.effects.values()].flatMap((of) => [...of.values()]);
    return all.reduce((sum, { length }) => sum + length - 1, 0);
  }

  /** Something was killed that may have done what it could not store. */
  killed(): void {
    this.kills.push(Date.now());
  }

  faults(): string[] {
    return [...this.crashes, ...[...this.placed].flatMap((id) => this.faultsOf(id).map((fault) => `${id}: ${fault}`))];
  }

  private faultsOf(id: string): string[] {
    const of = this.effects.get(id) ?? new Map<string, number[]>();
    const wanted = [...FORTH, ...(id.endsWith('x') ? BACK : ['ship'])];
    const missing = wanted.filter((what) => !of.has(what)).map((what) => `${what} never happened`);
    const wrong = [...of.keys()].filter((what) => !wanted.includes(what)).map((what) => `${what} happened`);
    const order = wanted.flatMap((what, at) => {
      const [before, now] = [of.get(wanted[at - 1] ?? '')?.[0] ?? 0, of.get(what)?.[0] ?? Infinity];
      return now < before ? [`${what} happened before ${wanted[at - 1]}`] : [];
    });
    const twice = [...of].flatMap(([what, times]) =>
      times.slice(1).flatMap((time, at) => (this.isExcused(times[at]!, time) ? [] : [`${what} happened twice`])),
    );
    return [...missing, ...wrong, ...order, ...twice];
  }

  /** Between the two something was killed: the first was not stored. */
  private isExcused(from: number, to: number): boolean {
    return this.kills.some((at) => at >= from - SLACK_MS && at - SLACK_MS <= to);
  }

  protected hear(line: string): void {
    const [at, word, id, what] = line.split(' ') as [string, string, string, string];
    if (word === 'placed') return void this.placed.add(id);
    let of = this.effects.get(id);
    if (!of) this.effects.set(id, (of = new Map()));
    of.set(what, [...(of.get(what) ?? []), Number(at)]);
  }
}
