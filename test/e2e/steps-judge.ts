import { Processes, type Role } from './chaos.js';
import type { StepsSettings } from './steps-process.js';
import { StepsWaits } from './steps-waits.js';

/** What an order does outside, in this order; one that is sold out takes back what is behind. */
const FORTH = ['capture', 'invoice', 'stamp', 'row0', 'row1', 'row2', 'reserve'];
const BACK = ['release', 'refund'];

/** Pauses that are longer must have been explained. */
const LONG_PAUSE_MS = 30_000;
/** Of an order that does nothing for longer, Redis is asked for the states of its tasks. */
const SILENT_MS = 10_000;

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
  /** By order, effect and time: the process. */
  private readonly doers = new Map<string, number>();
  /** Of one server, or of Redis. */
  private readonly kills: { readonly at: number; readonly pid: number | undefined }[] = [];
  /** By order: when a thread died with its stamp. */
  private readonly deaths = new Map<string, number[]>();
  /** By order: when the lease of its task, or of one that it has called, was ended, though its server may live. */
  private readonly losses = new Map<string, number[]>();

  private readonly lostClients = new Set<number>();
  private readonly waits: StepsWaits;
  /** By order that has not ended: when it last did something. */
  private readonly going = new Map<string, number>();

  constructor(settings: StepsSettings) {
    super(new URL('./steps-process.ts', import.meta.url), settings);
    this.waits = new StepsWaits(settings.open);
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

  /** The longest times in which an order did nothing though its signal had come, longest first, with what it waited for. */
  pauses(most: number): string[] {
    const shown = this.allPauses().slice(0, most);
    return shown.map((pause) => `${describe(pause)}: ${this.waits.explain(pause.id, pause.from, pause.to).text}`);
  }

  /** How many pauses are long, and what is not explained of them. */
  longPauses(): { readonly count: number; readonly unexplained: string[] } {
    const long = this.allPauses().filter(({ from, to }) => to - from > LONG_PAUSE_MS);
    const unexplained = long.flatMap((pause) => {
      const { text, unexplained: parts } = this.waits.explain(pause.id, pause.from, pause.to);
      return parts.length > 0 ? [`${describe(pause)}: ${parts.join('; ')}; in all ${text}`] : [];
    });
    return { count: long.length, unexplained };
  }

  private allPauses(): Pause[] {
    const all = [...this.effects].flatMap(([id, of]) => {
      const did = [...of].flatMap(([what, times]) => times.map((at) => ({ what, at })));
      const signal = this.signals.get(id);
      if (signal !== undefined) did.push({ what: 'signal', at: signal });
      did.sort((one, other) => one.at - other.at);
      const pauses = did
        .slice(1)
        .map(({ what, at }, n) => ({ id, from: did[n]!.at, after: did[n]!.what, to: at, what }));
      return pauses.filter(({ what, after }) => what !== 'signal' || after !== 'row2');
    });
    return all.sort((one, other) => other.to - other.from - one.to + one.from);
  }

  /** Whether the client that placed an order was killed. */
  hasLostClient(id: string): boolean {
    return this.lostClients.has(Number.parseInt(id));
  }

  /** Orders that have done nothing for a while, and not ended for those who wait for that. */
  silent(now = Date.now()): string[] {
    return [...this.going].filter(([, at]) => now - at > SILENT_MS).map(([id]) => id);
  }

  /** What Redis says of a task of a silent order. */
  seen(task: string, state: string, at: number): void {
    this.record('seen', task, state);
    this.waits.state(task, state, at);
  }

  /** An order was signalled. */
  signalled(id: string, at = Date.now()): void {
    this.signals.set(id, at);
    if (!this.heard.has(id) && !this.hasEnded(id)) this.going.set(id, at);
  }

  /** Redis was killed, or is there again. */
  redis(isUp: boolean): void {
    this.killed();
    this.record('redis', isUp);
    this.waits.redis(isUp);
  }

  protected override changed(role: Role, pid: number, isUp: boolean): void {
    this.record(role, pid, isUp);
    if (role === 'server' && !isUp) this.killed(pid);
    if (role === 'server') this.waits.server(pid, isUp);
    else if (!isUp) this.lostClients.add(pid);
  }

  /** Something was killed that may have done what it could not store. @param pid of a server; else it was Redis */
  killed(pid?: number): void {
    this.kills.push({ at: Date.now(), pid });
  }

  /** The lease of a task was ended, which had so many seconds left at most. */
  lost(task: string, left: number): void {
    this.record('lost', task, left);
    this.waits.leaseEnded(task, left);
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
          this.isExcused(times[at]!, time, this.doers.get(`${id} ${what} ${times[at]}`)) ||
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
    return [...did, ...lost, ...this.kills.map(({ at, pid }) => `${at} KILL ${pid ?? 'Redis'}`)].toSorted().join(', ');
  }

  /** Between the two Redis was killed, or the server of the first, which was not stored. */
  private isExcused(from: number, to: number, doer: number | undefined): boolean {
    return this.kills.some(
      ({ at, pid }) => (pid === undefined || pid === doer) && at >= from - SLACK_MS && at - SLACK_MS <= to,
    );
  }

  /** One server may have had the effect when another one had the task. */
  private hasLost(id: string, from: number, to: number): boolean {
    return (this.losses.get(id) ?? []).some((at) => at >= from - SLACK_MS && at <= to + SLACK_MS);
  }

  private hasDied(id: string, from: number, to: number): boolean {
    return (this.deaths.get(id) ?? []).some((at) => at >= from && at <= to);
  }

  protected hear(line: string, pid: number): void {
    const [time, word, subject, what = ''] = line.split(' ') as [string, string, string, string?];
    const at = Number(time);
    if (word === 'dies') this.died(subject.split('~', 1)[0]!, at);
    if (this.waits.hear(at, word, subject, what, pid)) return;
    if (word === 'placed') return void this.placed.add(subject);
    if (word === 'signalled') return this.signalled(subject, at);
    if (word === 'heard') {
      this.going.delete(subject);
      return void this.heard.set(subject, what);
    }
    if (word === 'stored') {
      const of = mapOf(this.stored, subject);
      if (!of.has(what) && (what === 'invoice' || what === 'stamp')) this.waits.answered(`${subject}~${what}`, at);
      of.set(what, Math.min(of.get(what) ?? Infinity, at));
      return;
    }
    const of = mapOf(this.effects, subject);
    of.set(what, [...(of.get(what) ?? []), at]);
    this.doers.set(`${subject} ${what} ${at}`, pid);
    const waitsForSignal = what === 'row2' && !this.signals.has(subject);
    if (waitsForSignal || this.hasEnded(subject)) this.going.delete(subject);
    else this.going.set(subject, at);
  }

  private hasEnded(id: string): boolean {
    const of = this.effects.get(id);
    return of !== undefined && (of.has('ship') || of.has('refund'));
  }

  private died(id: string, at: number): void {
    this.count('died thread');
    this.deaths.set(id, [...(this.deaths.get(id) ?? []), at]);
  }
}

interface Pause {
  readonly id: string;
  readonly from: number;
  /** What it did last, and what then. */
  readonly after: string;
  readonly to: number;
  readonly what: string;
}

const describe = ({ id, from, after, to, what }: Pause): string =>
  `${to - from} ms of ${id} from ${after} at ${from} to ${what}`;
