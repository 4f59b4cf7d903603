import { expect } from 'vitest';
import type { EnqueueRequest, LeasedTask } from '../../lib/broker/broker.js';
import {
  type NewRun,
  type NewStep,
  type RunState,
  type StepState,
  type StoredRun,
  taskIdOfStep,
} from '../../lib/broker/workflows.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request } from '../support/messages.js';
import type { Driver } from './driver.js';
import { type Ending, LinkSession } from './link-session.js';

const DAY = 86_400;

/** What is not the default of a step. */
export interface StepOptions extends Partial<Omit<NewStep, 'name' | 'request'>> {
  readonly message?: Partial<TaskMessage>;
  readonly request?: Partial<EnqueueRequest>;
}

/** A step of the run `wf:1`, in the queue `default` unless its message says otherwise. */
export function step(name: string, options: StepOptions = {}, run = 'wf:1'): NewStep {
  const { message, request: further, ...rest } = options;
  const task = request({ id: taskIdOfStep(run, name), type: `do:${name}`, ...message }, further);
  return { name, request: task, after: [], onFailure: 'cancel', optional: false, delay: 0, ...rest };
}

/** A run of a workflow in a test, in the queue `default`. */
export class RunSession extends LinkSession {
  private readonly tasks = new Map<string, LeasedTask>();
  private readonly queues = new Set(['default']);

  constructor(
    driver: Driver,
    readonly id = 'wf:1',
  ) {
    super(driver);
  }

  get workflows() {
    return this.driver.broker.workflows;
  }

  newRun(steps: readonly NewStep[], options: Partial<NewRun> = {}): NewRun {
    return { id: this.id, name: 'wf', steps, retention: 7 * DAY, deadline: undefined, ...options };
  }

  async start(steps: readonly NewStep[], options: Partial<NewRun> = {}): Promise<'started' | 'exists'> {
    const status = await this.begin(steps, options);
    await this.relay();
    return status;
  }

  /** Starts the run, and carries nothing yet. */
  async begin(steps: readonly NewStep[], options: Partial<NewRun> = {}): Promise<'started' | 'exists'> {
    this.know(steps);
    return this.took(await this.workflows.start('default', [this.newRun(steps, options)])).statuses[0]!;
  }

  async grow(...steps: NewStep[]): Promise<string> {
    this.know(steps);
    const { status } = this.took(await this.workflows.grow('default', this.id, steps));
    await this.relay();
    return status;
  }

  /** Claims the task of a step, if it can be claimed. */
  async claim(name: string): Promise<LeasedTask | undefined> {
    for (const queue of this.queues) {
      const reply = this.took(await this.driver.exchange([], 1000, queue));
      for (const task of reply.tasks) this.tasks.set(task.lease.id, task);
    }
    return this.tasks.get(taskIdOfStep(this.id, name));
  }

  /** Claims the task of a step, and ends it. Nothing is carried yet. */
  async settle(name: string, ending: Ending = 'done', reason = 'boom'): Promise<void> {
    const task = await this.claim(name);
    if (!task) throw new Error(`the task of step "${name}" is not pending`);
    this.tasks.delete(task.lease.id);
    await this.end(task, ending, reason);
  }

  /** The same for several steps, one after the other; what each causes is carried before the next. */
  async finish(...names: string[]): Promise<void> {
    for (const name of names) {
      await this.settle(name);
      await this.relay();
    }
  }

  async fail(name: string, reason = 'boom'): Promise<void> {
    await this.settle(name, 'archive', reason);
    await this.relay();
  }

  async stored(): Promise<StoredRun> {
    const run = await this.workflows.run('default', this.id);
    if (!run) throw new Error(`there is no run "${this.id}"`);
    const { graph, ...summary } = run;
    expect(await this.workflows.summary('default', this.id)).toEqual(summary);
    const count = (...states: StepState[]): number => graph.filter(({ state }) => states.includes(state)).length;
    expect(summary).toMatchObject({
      steps: graph.length,
      open: count('waiting', 'ready'),
      failed: count('failed'),
    });
    expect(summary.endedAt === undefined).toBe(summary.state === 'running');
    return run;
  }

  /** The states of all steps, `a:ready b:waiting`, and of the run. */
  async states(): Promise<[RunState, string]> {
    const { state, graph } = await this.stored();
    return [state, graph.map((one) => `${one.name}:${one.state}`).join(' ')];
  }

  async step(name: string): Promise<StoredRun['graph'][number]> {
    const found = (await this.stored()).graph.find((one) => one.name === name);
    if (!found) throw new Error(`there is no step "${name}"`);
    return found;
  }

  /** Deletes the run, if it was started. It has ended, and with it all of its steps. */
  async deleteEnded(): Promise<void> {
    const run = await this.workflows.run('default', this.id);
    if (!run) return this.relay();
    const open = run.graph.filter(({ state }) => state === 'ready' || state === 'waiting');
    expect([run.id, run.state === 'running', open]).toEqual([this.id, false, []]);
    expect(this.took(await this.workflows.delete('default', this.id)).status).toBe('deleted');
    await this.relay();
  }

  /** Deletes the run; then nothing is left of it. */
  async expectNothingLeft(): Promise<void> {
    expect(this.took(await this.workflows.delete('default', this.id)).status).toBe('deleted');
    await this.relay();
    expect(await this.workflows.run('default', this.id)).toBeUndefined();
    await this.expectNothingKept();
  }

  /** The queues from which tasks are claimed. */
  know(steps: readonly NewStep[]): void {
    for (const { request: one } of steps) this.queues.add(one.message.queue);
  }
}
