import { Processes } from './chaos.js';
import { MODES, type Rule, THROTTLE_MS } from './repeat-modes.js';
import type { RepeatSettings } from './repeat-process.js';

/** What clients may be refused: Redis is away, or the task is there. */
const REFUSALS = ['ASYNQ_BROKER_UNAVAILABLE', 'ASYNQ_DUPLICATE_TASK'];

/** A call of a client, by the clock of the machine. What a call does is done between the two times. */
interface Call {
  readonly name: string;
  readonly sent: number;
  /** Infinity: no reply is known, and it may have been done or not. */
  end: number;
  /** The task it got. */
  id?: string;
  created?: boolean;
}

interface Attempt {
  readonly call: string;
  readonly number: string;
  readonly began: number;
  /** When its handler has ended well. */
  ran?: number;
  /** Whether its handler has ended: its server lived. */
  ended?: boolean;
}

/** The tasks of a mode and a key: whatever is known of them for sure. */
class Subject {
  readonly calls = new Map<string, Call>();
  readonly tasks = new Map<string, Attempt[]>();
  /** When leases of its tasks were ended by the test. */
  private readonly leaseEnds: { readonly id: string; readonly at: number }[] = [];

  constructor(
    readonly name: string,
    private readonly rules: readonly Rule[],
  ) {}

  leaseEnded(id: string, at: number): void {
    this.leaseEnds.push({ id, at });
  }

  attemptsOf(id: string): Attempt[] {
    let attempts = this.tasks.get(id);
    if (!attempts) this.tasks.set(id, (attempts = []));
    return attempts;
  }

  faults(): string[] {
    const checks: Record<Rule, () => string[]> = {
      alone: () => (this.most(this.lives()) > 1 ? ['two were there at once'] : []),
      follows: () => [
        ...(this.most(this.lives()) > 2 ? ['a third one waited'] : []),
        ...(this.most(this.runs()) > 1 ? ['two ran at once'] : []),
      ],
      once: () => (new Set(this.succeeded().map(({ call }) => call)).size > 1 ? ['two calls had a task that ran'] : []),
      spaced: () => this.tooClose(),
      last: () => this.lastIsLost(),
      supersedes: () => this.cameAgain(),
    };
    const found = [...this.lost(), ...this.twice(), ...this.rules.flatMap((rule) => checks[rule]())];
    return found.map((fault) => `${this.name}: ${fault}`);
  }

  private succeeded(): Attempt[] {
    return [...this.tasks.values()].flat().filter(({ ran }) => ran !== undefined);
  }

  private createdBy(id: string): Call | undefined {
    return [...this.calls.values()].find((call) => call.id === id && call.created);
  }

  /** What was accepted ran, unless a newer one has taken its place. */
  private lost(): string[] {
    if (this.rules.includes('supersedes')) return [];
    const ids = new Set(Array.from(this.calls.values(), ({ id }) => id));
    return [...ids].filter((id) => id && !this.tasks.get(id)?.some(({ ran }) => ran)).map((id) => `${id} never ran`);
  }

  /**
   * An attempt that ended well twice was claimed twice, or belongs to two tasks of one id. A call that replaces a task that waits for its
   * retry counts from 0 again.
   */
  private twice(): string[] {
    return [...this.tasks].flatMap(([id, attempts]) => {
      const names = attempts.filter(({ ran }) => ran).map(({ call, number }) => `${call} ${number}`);
      return new Set(names).size < names.length ? [`${id} ran twice`] : [];
    });
  }

  /**
   * Tasks whose lease the test has ended though their server lived: it took longer than that to tell Redis how they ended. What is said
   * late ends the next attempt, too, while that one still runs.
   */
  private lapsed(): ReadonlySet<string> {
    const ended = this.leaseEnds.filter(
      ({ id, at }) => this.tasks.get(id)?.findLast(({ began }) => began <= at)?.ended,
    );
    return new Set(ended.map(({ id }) => id));
  }

  private tasksWithLease(): [string, Attempt[]][] {
    const lapsed = this.lapsed();
    return [...this.tasks].filter(([id]) => !lapsed.has(id));
  }

  /** From when to when each task was there in any case. */
  private lives(): [number, number][] {
    return this.tasksWithLease().map(([id, attempts]) => {
      const made = Math.min(this.createdBy(id)?.end ?? Infinity, ...attempts.map(({ began }) => began));
      return [made, Math.max(...attempts.map(({ ran = 0 }) => ran))];
    });
  }

  private runs(): [number, number][] {
    const attempts = this.tasksWithLease().flatMap(([, all]) => all);
    return attempts.filter(({ ran }) => ran !== undefined).map(({ began, ran }) => [began, ran!]);
  }

  /** How many of these spans there are at once at most. */
  private most(spans: readonly [number, number][]): number {
    return Math.max(0, ...spans.map(([at]) => spans.filter(([from, to]) => from <= at && at < to).length));
  }

  private tooClose(): string[] {
    const made = [...this.tasks].map(([id, attempts]) => {
      const call = this.createdBy(id) ?? this.calls.get(attempts[0]!.call)!;
      return { id, from: call.sent, to: Math.min(call.end, attempts[0]!.began) };
    });
    made.sort((one, other) => one.from - other.from);
    return made.flatMap(({ id, to }, at) => {
      const before = made[at - 1];
      return before && to - before.from < THROTTLE_MS ? [`${id} was made too soon after ${before.id}`] : [];
    });
  }

  /** The payload of a call ran that no other call came after. */
  private lastIsLost(): string[] {
    const accepted = [...this.calls.values()].filter(({ id }) => id !== undefined);
    const latest = Math.max(...accepted.map(({ sent }) => sent));
    const isLast = ({ call }: Attempt): boolean => this.calls.get(call)!.end >= latest;
    return accepted.length === 0 || this.succeeded().some(isLast) ? [] : ['the last payload did not run'];
  }

  /** Once a newer task has replied, an older one may begin once at most: the attempt that was claimed by then. */
  private cameAgain(): string[] {
    return [...this.tasks].flatMap(([id, attempts]) => {
      const made = this.createdBy(id)?.end ?? attempts[0]!.began;
      const newer = [...this.calls.values()].filter((call) => call.created && call.id !== id && call.sent > made);
      const superseded = Math.min(Infinity, ...newer.map(({ end }) => end));
      const late = attempts.filter(({ began }) => began > superseded);
      return late.length > 1 ? [`${id} began ${late.length} times after it was superseded`] : [];
    });
  }
}

/** Listens to clients and servers of repeat-process.ts, and judges what they say. */
export class RepeatJudge extends Processes {
  private readonly subjects = new Map<string, Subject>();
  private readonly refused = new Set<string>();

  constructor(settings: RepeatSettings) {
    super(new URL('./repeat-process.ts', import.meta.url), settings);
  }

  faults(): string[] {
    const refused = [...this.refused].filter((code) => !REFUSALS.includes(code));
    return [...this.crashes, ...refused, ...Array.from(this.subjects.values(), (one) => one.faults()).flat()];
  }

  /** The test has ended the lease of a task of any mode. */
  leaseEnded(id: string): void {
    for (const subject of this.subjects.values()) subject.leaseEnded(id, Date.now());
  }

  /** How much was done, by mode. */
  get figures(): object {
    const figures: Record<string, { calls: number; tasks: number; attempts: number }> = {};
    for (const { name, calls, tasks } of this.subjects.values()) {
      const figure = (figures[name.split(' ')[0]!] ??= { calls: 0, tasks: 0, attempts: 0 });
      figure.calls += calls.size;
      figure.tasks += tasks.size;
      figure.attempts += [...tasks.values()].flat().length;
    }
    return { ...figures, ...this.deeds };
  }

  protected hear(line: string): void {
    const [at, word, mode, key, ...more] = line.split(' ') as [string, string, string, string, ...string[]];
    const subject = this.subjectOf(mode, key);
    const [first, second, third] = more as [string, string, string];
    const time = Number(at);
    if (word === 'calls') return void subject.calls.set(first, { name: first, sent: time, end: Infinity });
    const call = subject.calls.get(first);
    if (word === 'got') Object.assign(call!, { end: time, id: second, created: third === 'true' });
    else if (word === 'began') subject.attemptsOf(first).push({ call: second, number: third, began: time });
    else if (word === 'ran') this.end(subject.attemptsOf(first), second, third, time);
    else if (word === 'threw') this.end(subject.attemptsOf(first), second, third);
    else if (second === 'ASYNQ_DUPLICATE_TASK') subject.calls.delete(first); // it has done nothing
    else this.refused.add(second);
  }

  private end(attempts: Attempt[], call: string, number: string, ran?: number): void {
    const attempt = attempts.findLast((one) => one.call === call && one.number === number && !one.ended);
    if (attempt) Object.assign(attempt, { ran, ended: true });
  }

  private subjectOf(mode: string, key: string): Subject {
    const name = `${mode} ${key}`;
    let subject = this.subjects.get(name);
    if (!subject) this.subjects.set(name, (subject = new Subject(name, MODES[mode]!.rules)));
    return subject;
  }
}
