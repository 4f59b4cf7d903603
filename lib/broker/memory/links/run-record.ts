import { InvalidTaskError } from '../../../errors.js';
import type { EnqueueRequest } from '../../enqueue-request.js';
import type { FailurePolicy, MarkRequest } from '../../links.js';
import type { NewRun, NewStep, RunState, StepState } from '../../workflows.js';

/** What a step means to those after it: a failed one that is optional is done. */
type Outcome = 'open' | 'ok' | 'bad';

/** A step of a run. Times are milliseconds since the epoch. */
export interface StepRecord {
  readonly name: string;
  readonly request: EnqueueRequest;
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  readonly delay: number;
  readonly mark: MarkRequest | undefined;
  readonly dependents: StepRecord[];
  state: StepState;
  /** It has failed before, and is run again: until it succeeds it means to those after it what it meant. */
  again: boolean;
  /** How many of those before it have not ended, and how many have failed. */
  open: number;
  bad: number;
  error: string | undefined;
  result: Buffer | undefined;
  readyAt: number | undefined;
  endedAt: number | undefined;
}

/** The graph of a run, and how far it has come. Every change is one step of the store. */
export class RunRecord {
  readonly steps = new Map<string, StepRecord>();
  state: RunState = 'running';
  endedAt: number | undefined;
  reason: string | undefined;
  /** Unix seconds. */
  deadline: number | undefined;
  open = 0;
  ready = 0;
  failed = 0;
  /** Steps that have failed and are not optional. */
  private bad = 0;
  private released: StepRecord[] = [];
  /** Steps that mean something else to those after them now, and what they meant. */
  private changed: [StepRecord, Outcome][] = [];

  constructor(
    readonly place: string,
    readonly options: NewRun,
    readonly startedAt: number,
  ) {
    this.deadline = options.deadline;
  }

  /** Adds steps, all or none; what is known about those before them is applied at once. */
  add(added: readonly NewStep[]): 'added' | 'unknown' | 'taken' {
    const names = new Set(added.map(({ name }) => name));
    if (names.size < added.length || [...names].some((name) => this.steps.has(name))) return 'taken';
    const isKnown = (name: string): boolean => names.has(name) || this.steps.has(name);
    if (!added.every(({ after }) => after.every(isKnown))) return 'unknown';
    const records = added.map(newStep);
    for (const record of records) this.steps.set(record.name, record);
    this.open += records.length;
    for (const record of records) {
      for (const name of record.after) this.steps.get(name)!.dependents.push(record);
    }
    for (const record of records) this.begin(record, names);
    this.propagate();
    return 'added';
  }

  /** The task of a step has ended. @param error why it failed, if it has more to say than its run @param at milliseconds since the epoch */
  end(name: string, ok: boolean, error: string | undefined, result: Buffer | undefined, at: number): void {
    const step = this.steps.get(name);
    if (step?.state !== 'ready' && step?.state !== 'failed') return;
    if (!ok && step.state === 'failed') return;
    const before = outcomeOf(step);
    if (step.state === 'failed') this.countFailed(step, -1);
    else {
      this.open--;
      this.ready--;
    }
    step.state = ok ? 'succeeded' : this.state === 'cancelled' ? 'cancelled' : 'failed';
    if (step.state === 'failed') this.countFailed(step, 1);
    step.again = false;
    step.endedAt = at;
    step.error = ok ? undefined : error;
    step.result = ok ? result : undefined;
    if (this.state === 'cancelled') return;
    this.changed.push([step, before]);
    this.propagate();
  }

  /** Makes the failed steps ready again. */
  retry(): StepRecord[] {
    const failed = [...this.steps.values()].filter(({ state }) => state === 'failed');
    for (const step of failed) {
      this.countFailed(step, -1);
      this.open++;
      this.ready++;
      step.state = 'ready';
      step.again = true;
    }
    return failed;
  }

  cancel(reason: string, now: number): void {
    for (const step of this.steps.values()) {
      if (step.state !== 'waiting') continue;
      step.state = 'cancelled';
      this.open--;
    }
    this.state = 'cancelled';
    this.reason = reason;
    this.endedAt = now;
  }

  /** The steps that became ready since the last call: their tasks are to be created. */
  takeReleased(): StepRecord[] {
    const { released } = this;
    this.released = [];
    return released;
  }

  /** Finds out whether it has ended, or runs again. @returns whether that has changed */
  settle(now: number): boolean {
    const before = this.state;
    if (before === 'cancelled') return false;
    this.state = this.ready > 0 ? 'running' : this.bad > 0 || this.open > 0 ? 'failed' : 'succeeded';
    if (this.state === before) return false;
    this.endedAt = this.state === 'running' ? undefined : now;
    // Whoever revives a run after its deadline wants it to end all the same.
    if (before === 'failed' && this.deadline !== undefined && this.deadline * 1000 <= now) this.deadline = undefined;
    return true;
  }

  /** Applies what is known about the steps before a new one; those that are new, too, are open. */
  private begin(step: StepRecord, added: ReadonlySet<string>): void {
    for (const name of step.after) {
      if (!added.has(name)) this.adjust(step, 'open', outcomeOf(this.steps.get(name)!));
    }
    this.decide(step);
  }

  private countFailed(step: StepRecord, by: number): void {
    this.failed += by;
    if (!step.optional) this.bad += by;
  }

  /** Applies what changed steps mean now to those after them, and so on; by a list, as a chain may be long. */
  private propagate(): void {
    for (let at = 0; at < this.changed.length; at++) {
      const [step, before] = this.changed[at]!;
      for (const dependent of step.dependents) this.adjust(dependent, before, outcomeOf(step));
    }
    this.changed = [];
  }

  private adjust(step: StepRecord, before: Outcome, after: Outcome): void {
    if (before === after) return;
    if (before !== 'ok') step[before]--;
    if (after !== 'ok') step[after]++;
    this.decide(step);
  }

  private decide(step: StepRecord): void {
    if (step.state !== 'waiting' && step.state !== 'cancelled') return;
    const before = outcomeOf(step);
    const state = stateOf(step);
    if (state === step.state) return;
    const isOpen = state !== 'cancelled';
    if (isOpen !== (step.state !== 'cancelled')) this.open += isOpen ? 1 : -1;
    step.state = state;
    if (state === 'ready') {
      this.ready++;
      this.released.push(step);
    }
    if (outcomeOf(step) !== before) this.changed.push([step, before]);
  }
}

/** The state of a step that has no task, by those before it. */
function stateOf({ open, bad, onFailure }: StepRecord): StepState {
  if (onFailure === 'cancel' && bad > 0) return 'cancelled';
  return open === 0 && (bad === 0 || onFailure === 'run') ? 'ready' : 'waiting';
}

function outcomeOf({ state, optional, again }: StepRecord): Outcome {
  if (state === 'succeeded') return 'ok';
  if (state === 'cancelled') return 'bad';
  return state === 'failed' || again ? (optional ? 'ok' : 'bad') : 'open';
}

function newStep({ name, request, after, onFailure, optional, delay, mark }: NewStep): StepRecord {
  return {
    name,
    request,
    after,
    onFailure,
    optional,
    delay,
    mark,
    dependents: [],
    state: 'waiting',
    again: false,
    open: after.length,
    bad: 0,
    error: undefined,
    result: undefined,
    readyAt: undefined,
    endedAt: undefined,
  };
}

/** Reports steps that no run can have. @throws InvalidTaskError */
export function refuseSteps(run: string, why: 'unknown' | 'taken'): never {
  const what = why === 'taken' ? 'two steps have the same name' : 'a step comes after one that is not there';
  throw new InvalidTaskError(`the workflow "${run}" cannot be started: ${what}; check the names of its steps`);
}
