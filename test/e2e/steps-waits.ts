/*
 * Why orders of steps-chaos.spec.ts waited. An order has a task of its own, and calls two others one after the other: it waits for what
 * holds the one that is called, or else for what holds its own. Each moment of a pause has a cause, which is known from what was recorded
 * for that very order (who claimed its task, began and ended it, when that server was killed, its lease ended, it was recovered), and
 * from when servers, threads and Redis were there.
 */

import { LEASE_SECONDS } from '../../lib/broker/broker.js';

/** Servers round leases down, and the chaos rounds, too. */
const ROUNDING_SECONDS = 2;

type Cause =
  | 'in line'
  | 'claimed, and not begun'
  | 'its claim was lost'
  | 'waiting for a thread'
  | 'running'
  | 'its server was dead'
  | 'its lease had ended'
  | 'no server was up'
  | 'Redis was away';

/** For how long one cause may go on without an event of that order, in milliseconds. */
const MOST: Record<Cause, number> = {
  'in line': 30_000,
  'claimed, and not begun': 35_000, // few run beside a task whose server has died: for 30 s a server waits until others have ended
  'its claim was lost': 35_000, // Redis or the server was killed before the server had the reply: a lease is 30 s
  'waiting for a thread': 65_000, // one may take a minute to start
  running: 30_000,
  'its server was dead': 35_000, // a lease is 30 s, if the chaos does not end it before
  'its lease had ended': 30_000, // who recovers tasks may have died, too: others notice after 12 s
  'no server was up': Infinity,
  'Redis was away': Infinity,
};

/** What servers and threads say of tasks: `stamps` is the begin in a thread, `dies` its death. */
const WORDS = ['claimed', 'began', 'stamps', 'dies', 'ended', 'recovered'] as const;
type Word = (typeof WORDS)[number];

interface Happening {
  readonly at: number;
  readonly task: string;
  readonly word: Word | 'lease ended' | 'server killed' | 'state' | 'answered';
  readonly pid: number;
  /** How it ended, or the state that Redis had. */
  readonly what: string;
}

interface Interval {
  readonly from: number;
  to: number;
}

interface Phase extends Interval {
  readonly cause: Cause;
  readonly task: string;
  /** The same for all phases in which nothing was recorded of the order that changed what it waited for. */
  readonly hold: number;
}

export interface Explanation {
  readonly text: string;
  /** Phases that no event ended in time. */
  readonly unexplained: readonly string[];
}

/** What holds a task. */
interface Hold {
  readonly cause: Cause | 'suspended' | 'over';
  readonly pid: number;
  readonly since: number;
}

/** What an order calls, one after the other. */
const CALLED = [
  { name: '~invoice', queue: 'other' },
  { name: '~stamp', queue: 'threads' },
];
const queueOf = (task: string): string => CALLED.find(({ name }) => task.endsWith(name))?.queue ?? 'default';
const OVER = new Set(['done', 'completed', 'archived', 'revoked']);

function mapOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;

const isWord = (word: string): word is Word => (WORDS as readonly string[]).includes(word);

const orderOf = (task: string): string => task.split('~', 1)[0]!;

const isKillOf = (one: Happening, task: string, pid: number): boolean =>
  one.word === 'server killed' && one.task === task && one.pid === pid;

export class StepsWaits {
  /** By order. */
  private readonly happenings = new Map<string, Happening[]>();
  /** By server: tasks that it has claimed and not ended. */
  private readonly held = new Map<number, Set<string>>();
  /** By queue: when attempts began. */
  private readonly begins = new Map<string, number[]>();
  private readonly servers = new Map<number, Interval>();
  private readonly redisAway: Interval[] = [];

  /** @param open how many orders are open at most: so many may be ahead of one in line */
  constructor(private readonly open: number) {}

  server(pid: number, isUp: boolean, at = Date.now()): void {
    if (isUp) return void this.servers.set(pid, { from: at, to: Infinity });
    const interval = this.servers.get(pid);
    if (!interval) return;
    interval.to = at;
    for (const task of this.held.get(pid) ?? []) this.noteKill(task, pid, at);
    this.held.delete(pid);
  }

  redis(isUp: boolean, at = Date.now()): void {
    if (!isUp) this.redisAway.push({ from: at, to: Infinity });
    else this.redisAway.at(-1)!.to = at;
  }

  /** Returns whether it is a word about tasks. */
  hear(at: number, word: string, task: string, what: string, pid: number): boolean {
    if (!isWord(word)) return false;
    if (word === 'claimed' || word === 'began') mapOf(this.held, pid, () => new Set()).add(task);
    if (word === 'ended') this.held.get(pid)?.delete(task);
    if (word === 'began') {
      mapOf(this.begins, what, () => []).push(at);
    }
    this.note(task, { at, task, word, pid, what });
    const { to = Infinity } = this.servers.get(pid) ?? {};
    // Its last words are read when it has been killed.
    if (to < Infinity && (word === 'claimed' || word === 'began')) this.noteKill(task, pid, to);
    return true;
  }

  /** @param left of the lease at most, in seconds: so long before it was surely leased, though perhaps nobody has said so */
  leaseEnded(task: string, left: number, at = Date.now()): void {
    this.state(task, 'leased', at - (LEASE_SECONDS - left - ROUNDING_SECONDS) * 1000);
    this.note(task, { at, task, word: 'lease ended', pid: 0, what: '' });
  }

  /** An order knows the end of a task that it has called. */
  answered(task: string, at: number): void {
    this.note(task, { at, task, word: 'answered', pid: 0, what: '' });
  }

  /** What Redis says about a task of an order that has done nothing for a while. */
  state(task: string, what: string, at: number): void {
    this.note(task, { at, task, word: 'state', pid: 0, what });
  }

  /** What an order waited for. */
  explain(order: string, from: number, to: number): Explanation {
    const all = (this.happenings.get(order) ?? []).toSorted((one, other) => one.at - other.at);
    const phases = this.phasesOf(order, all, from, to);
    const sums = new Map<string, number>();
    for (const { cause, task, ...one } of phases) {
      const key = `${task.slice(order.length) || 'order'} ${cause}`;
      sums.set(key, (sums.get(key) ?? 0) + one.to - one.from);
    }
    const within = all.filter(({ at, what }) => at >= from && at <= to && what !== 'leased');
    const counts = new Map<string, number>();
    for (const { task, word, what } of within) {
      const key =
        `${task.slice(order.length) || 'order'} ${word === 'state' ? 'seen' : word} ${word === 'began' ? '' : what}`.trim();
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const waited = [...sums].sort(([, one], [, other]) => other - one).map(([key, ms]) => `${key} ${seconds(ms)}`);
    const happened = [...counts].map(([key, count]) => `${count} × ${key}`);
    return {
      text: `${waited.join(', ')} (${happened.join(', ') || 'no event'})`,
      unexplained: this.unexplained(phases),
    };
  }

  private noteKill(task: string, pid: number, at: number): void {
    const isNoted = this.happenings.get(orderOf(task))?.some((one) => isKillOf(one, task, pid));
    if (!isNoted) this.note(task, { at, task, word: 'server killed', pid, what: '' });
  }

  private note(task: string, happening: Happening): void {
    mapOf(this.happenings, orderOf(task), () => []).push(happening);
  }

  private phasesOf(order: string, all: readonly Happening[], from: number, to: number): Phase[] {
    const holds = new Map<string, Hold>();
    const phases: Phase[] = [];
    let since = from;
    let last: readonly [string, Hold] | undefined;
    let hold = 0;
    const until = (at: number): void => {
      const now = holdOf(order, holds);
      if (last && (last[0] !== now[0] || last[1].cause !== now[1].cause || last[1].pid !== now[1].pid)) hold += 1;
      last = now;
      phases.push(...this.split({ from: since, to: at }, now[0], now[1].cause as Cause, hold));
      since = at;
    };
    for (const one of all) {
      if (one.at > to) break;
      if (one.at > since) until(one.at);
      if (one.what === 'gone' && !holds.has(one.task)) continue; // it was not called yet
      holds.set(one.task, holdAfter(one, holds.get(one.task)));
    }
    if (since < to) until(to);
    return phases;
  }

  /** Cuts out when Redis was away, or no server was up. */
  private split(whole: Interval, task: string, cause: Cause, hold: number): Phase[] {
    const bounds = new Set([whole.from, whole.to]);
    const add = (at: number): void => void (at > whole.from && at < whole.to && bounds.add(at));
    for (const { from, to } of [...this.redisAway, ...this.servers.values()]) [from, to].forEach(add);
    const phases: Phase[] = [];
    const sorted = [...bounds].sort((one, other) => one - other);
    for (const [n, to] of sorted.slice(1).entries()) {
      const from = sorted[n]!;
      const now = this.causeAt((from + to) / 2, cause);
      const last = phases.at(-1);
      if (last?.cause === now) last.to = to;
      else phases.push({ from, to, task, cause: now, hold });
    }
    return phases;
  }

  private causeAt(at: number, cause: Cause): Cause {
    const isIn = ({ from, to }: Interval): boolean => from <= at && at < to;
    if (this.redisAway.some(isIn)) return 'Redis was away';
    return cause === 'in line' && ![...this.servers.values()].some(isIn) ? 'no server was up' : cause;
  }

  /** What went on for too long, apart from times without Redis or servers. */
  private unexplained(phases: readonly Phase[]): string[] {
    const parts = new Map<string, Phase & { length: number }>();
    for (const phase of phases) {
      const part = mapOf(parts, `${phase.hold} ${phase.cause}`, () => ({ ...phase, length: 0 }));
      part.length += phase.to - phase.from;
      part.to = phase.to;
    }
    return [...parts.values()].flatMap(({ from, to, cause, task, length }) => {
      if (length <= MOST[cause]) return [];
      if (cause !== 'in line') return [`${task}: ${cause}, for ${seconds(length)} from ${from}`];
      const others = (this.begins.get(queueOf(task)) ?? []).filter((at) => at > from && at < to).length;
      // Others were ahead of it, and it came in its turn.
      if (others > 0 && others <= 2 * this.open) return [];
      return [`${task} was in line for ${seconds(length)} from ${from}, while ${others} others began`];
    });
  }
}

/** The task that an order waits for, and what holds it. */
function holdOf(order: string, holds: ReadonlyMap<string, Hold>): readonly [string, Hold] {
  const own = holds.get(order) ?? inLine(0);
  const last = CALLED.findLastIndex(({ name }) => holds.has(order + name));
  const called = last < 0 ? undefined : holds.get(order + CALLED[last]!.name)!;
  if (called && called.cause !== 'over') return [order + CALLED[last]!.name, called];
  const next = CALLED[last + 1];
  // It was suspended since: it has called the next one, which nobody has claimed yet.
  const hasCalled = own.cause === 'suspended' && next && own.since > (called?.since ?? 0);
  if (hasCalled) return [order + next.name, inLine(own.since)];
  return [order, own.cause === 'suspended' || own.cause === 'over' ? inLine(own.since) : own];
}

const inLine = (since: number): Hold => ({ cause: 'in line', pid: 0, since });

function holdAfter({ at, word, pid, what }: Happening, before: Hold | undefined): Hold {
  const same = before ?? inLine(at);
  switch (word) {
    case 'claimed':
      return { cause: 'claimed, and not begun', pid, since: at };
    case 'began':
      return { cause: what === 'threads' ? 'waiting for a thread' : 'running', pid, since: at };
    case 'stamps':
    case 'dies':
      return same.pid === pid ? { cause: 'running', pid, since: at } : same;
    case 'ended':
      if (before && before.pid !== pid) return before; // another server has it by now
      return { cause: OVER.has(what) ? 'over' : what === 'suspended' ? 'suspended' : 'in line', pid: 0, since: at };
    case 'server killed':
      return same.pid === pid ? { cause: 'its server was dead', pid, since: at } : same;
    case 'state': {
      // It has ended, and its server was killed before it could say so.
      if (what === 'gone') return same.cause === 'its server was dead' ? { cause: 'over', pid: 0, since: at } : same;
      const isLost =
        (what === 'active' || what === 'leased') && (same.cause === 'in line' || same.cause === 'suspended');
      return isLost ? { cause: 'its claim was lost', pid: 0, since: at } : same;
    }
    case 'answered':
      return { cause: 'over', pid: 0, since: before?.since ?? at };
    case 'lease ended':
      return { cause: 'its lease had ended', pid: 0, since: at };
    default:
      return inLine(at);
  }
}
