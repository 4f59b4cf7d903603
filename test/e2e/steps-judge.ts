import { Processes } from './chaos.js';
import type { StepsSettings } from './steps-process.js';

/** What an order does outside, in this order; one that is sold out takes back what is behind. */
const FORTH = ['capture', 'invoice', 'stamp', 'row0', 'row1', 'row2', 'reserve'];
const BACK = ['release', 'refund'];

/** A process that is killed has done what it did up to so many milliseconds before somebody says so. */
const SLACK_MS = 3_000;

function mapOf<T>(maps: Map<string, Map<string, T>>, id: string): Map<string, T> {
  let map = maps.get(id);
  if (!map) maps.set(id, (map = new Map<string, T>()));
  return map;
}

/** Listens to clients and servers of steps-process.ts, and judges what they say. */
export class StepsJudge extends Processes {
  private readonly placed = new Set<string>();
  /** By order and effect: when. */
  private readonly effects = new Map<string, Map<string, number[]>>();
  /** By order and effect: when a server first knew that it is stored. */
  private readonly stored = new Map<string, Map<string, number>>();
  private readonly signals = new Map<string, number>();
  /** How an order has ended for the client that waited for that. */
  private readonly heard = new Map<string, string>();
  private readonly kills: number[] = [];
  /** By order: when a thread died with its stamp. */
  private readonly deaths = new Map<string, number[]>();
  /** By order: when the lease of its task, or of one that it has called, was ended, though its server may live. */
  private readonly losses = new Map<string, number[]>();

  constructor(settings: StepsSettings) {
    super(new URL('./steps-process.ts', import.meta.url), settings);
  }

  get orders(): number {
    return this.placed.size;
  }

  /** How many orders are sold out, which archives their tasks. */
  get soldOut(): number {
    return [...this.placed].filter((id) => id.endsWith('x')).length;
  }

  /** How many orders have ended for a client that waited. */
  get heardOf(): number {
    return this.heard.size;
  }

  /** How often an effect came again. */
  get repeats(): number {
    const all = [...this.effects.values()].flatMap((of) => [...of.values()]);
    return all.reduce((sum, { length }) => sum + length - 1, 0);
  }

  /** How many tasks have begun: orders, and what they have called. */
  get tasks(): number {
    const begun = ['capture', 'invoice', 'stamp'];
    return [...this.effects.values()].reduce((sum, of) => sum + begun.filter((what) => of.has(what)).length, 0);
  }

  /**
   * The longest times in which an order did nothing though its signal had come, longest first: in milliseconds, with what it did before and
   * then.
   */
  pauses(most: number): string[] {
    const all = [...this.effects].flatMap(([id, of]) => {
      const did = [...of].flatMap(([what, times]) => times.map((at) => ({ what, at })));
      const signal = this.signals.get(id);
      if (signal !== undefined) did.push({ what: 'signal', at: signal });
      did.sort((one, other) => one.at - other.at);
      const pauses = did.slice(1).map(({ what, at }, n) => ({ ms: at - did[n]!.at, what, id, after: did[n]! }));
      return pauses.filter(({ what, after }) => what !== 'signal' || after.what !== 'row2');
    });
    all.sort((one, other) => other.ms - one.ms);
    return all
      .slice(0, most)
      .map(({ ms, what, id, after }) => `${ms} ms of ${id}, ${after.what} at ${after.at}, ${what}`);
  }

  /** An order was signalled. */
  signalled(id: string, at = Date.now()): void {
    this.signals.set(id, at);
  }

  /** Something was killed that may have done what it could not store. */
  killed(): void {
    this.kills.push(Date.now());
  }

  /** The lease of a task was ended. */
  lost(task: string): void {
    const [id] = task.split('~') as [string];
    this.losses.set(id, [...(this.losses.get(id) ?? []), Date.now()]);
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
      times
        .slice(1)
        .flatMap((time, at) =>
          this.isExcused(times[at]!, time) ||
          (what === 'stamp' && this.hasDied(id, times[at]!, time)) ||
          this.hasLost(id, times[at]!, time)
            ? []
            : [`${what} happened twice, at ${time} and ${time - times[at]!} ms before; ${this.taleOf(id)}`],
        ),
    );
    const again = [...of].flatMap(([what, times]) => {
      const stored = this.stored.get(id)?.get(what) ?? Infinity;
      return times
        .filter((time) => time > stored && !this.hasLost(id, stored, time))
        .map((time) => `${what} happened at ${time}, though it was stored at ${stored}; ${this.taleOf(id)}`);
    });
    const end = this.heard.get(id);
    const misheard = end && (end === 'ok') === id.endsWith('x') ? [`its client heard of its end: ${end}`] : [];
    return [...missing, ...wrong, ...order, ...twice, ...again, ...misheard];
  }

  /** What an order did when, and what was killed. */
  private taleOf(id: string): string {
    const did = [...this.effects.get(id)!].flatMap(([what, times]) => times.map((at) => `${at} ${what}`));
    const lost = (this.losses.get(id) ?? []).map((at) => `${at} LEASE ENDED`);
    return [...did, ...lost, ...this.kills.map((at) => `${at} KILL`)].toSorted().join(', ');
  }

  /** Between the two something was killed: the first was not stored. */
  private isExcused(from: number, to: number): boolean {
    return this.kills.some((at) => at >= from - SLACK_MS && at - SLACK_MS <= to);
  }

  /** One server may have had the effect when another one had the task. */
  private hasLost(id: string, from: number, to: number): boolean {
    return (this.losses.get(id) ?? []).some((at) => at >= from - SLACK_MS && at <= to + SLACK_MS);
  }

  private hasDied(id: string, from: number, to: number): boolean {
    return (this.deaths.get(id) ?? []).some((at) => at >= from && at <= to);
  }

  protected hear(line: string): void {
    const [at, word, id, what] = line.split(' ') as [string, string, string, string];
    if (word === 'placed') return void this.placed.add(id);
    if (word === 'dies') {
      this.count('died thread');
      return void this.deaths.set(id, [...(this.deaths.get(id) ?? []), Number(at)]);
    }
    if (word === 'signalled') return this.signalled(id, Number(at));
    if (word === 'heard') return void this.heard.set(id, what);
    if (word === 'stored') {
      const of = mapOf(this.stored, id);
      of.set(what, Math.min(of.get(what) ?? Infinity, Number(at)));
      return;
    }
    const of = mapOf(this.effects, id);
    of.set(what, [...(of.get(what) ?? []), Number(at)]);
  }
}
