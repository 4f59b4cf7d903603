import type { FailurePolicy } from '../../lib/broker/links.js';
import type { RunState, StepState } from '../../lib/broker/workflows.js';

interface ModelStep {
  readonly name: string;
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  /** `live`: somebody can run it, `dead`: it is archived, `gone`: it is nowhere. */
  task: 'none' | 'live' | 'dead' | 'gone';
  /** How it has ended last. */
  end: 'none' | 'succeeded' | 'failed' | 'cancelled';
  /** The run was retried since it failed. */
  again: boolean;
}

/**
 * What a run should be, said once more and as simply as possible: after each event, every step without a
 * task is judged anew by those before it, in the order of the graph.
 */
export class RunModel {
  readonly steps: ModelStep[] = [];
  private cancelled = false;

  add(name: string, after: readonly string[], onFailure: FailurePolicy, optional: boolean): void {
    this.steps.push({ name, after, onFailure, optional, task: 'none', end: 'none', again: false });
  }

  /** After events: lets steps begin. Steps are in an order in which each comes after those before it. */
  judge(): void {
    if (this.cancelled) return;
    for (const step of this.steps) if (step.task === 'none' && this.stateOf(step) === 'ready') step.task = 'live';
  }

  succeed(step: ModelStep): void {
    Object.assign(step, { task: 'gone', end: 'succeeded', again: false });
    this.judge();
  }

  fail(step: ModelStep, task: 'dead' | 'gone'): void {
    const isUnderWay = step.end === 'none' || step.again;
    step.task = task;
    step.end = this.cancelled && isUnderWay ? 'cancelled' : 'failed';
    step.again = false;
    this.judge();
  }

  retry(): void {
    for (const step of this.steps)
      if (step.end === 'failed' && !step.again) Object.assign(step, { again: true, task: 'live' });
  }

  cancel(): void {
    this.cancelled = true;
  }

  get state(): RunState {
    if (this.cancelled) return 'cancelled';
    const states = this.steps.map((step) => this.stateOf(step));
    if (states.includes('ready')) return 'running';
    const isBad = this.steps.some((step, index) => states[index] === 'failed' && !step.optional);
    return isBad ? 'failed' : 'succeeded';
  }

  get states(): string {
    return this.steps.map((step) => `${step.name}:${this.stateOf(step)}`).join(' ');
  }

  private stateOf(step: ModelStep): StepState {
    if (step.task !== 'none') return step.again || step.end === 'none' ? 'ready' : step.end;
    if (this.cancelled) return 'cancelled';
    const before = step.after.map((name) => this.meaningOf(this.steps.find((one) => one.name === name)!));
    if (step.onFailure === 'cancel' && before.includes('bad')) return 'cancelled';
    const blocking = step.onFailure === 'run' ? ['open'] : ['open', 'bad'];
    return before.some((meaning) => blocking.includes(meaning)) ? 'waiting' : 'ready';
  }

  private meaningOf(step: ModelStep): 'open' | 'ok' | 'bad' {
    if (step.end === 'succeeded') return 'ok';
    if (step.end === 'failed') return step.optional ? 'ok' : 'bad';
    return this.stateOf(step) === 'cancelled' ? 'bad' : 'open';
  }
}
