import fc from 'fast-check';
import { expect } from 'vitest';
import { taskIdOfStep } from '../../lib/broker/workflows.js';
import type { Driver } from './driver.js';
import { historyCount } from './property-stores.js';
import { describeRunHistories, randomStep, type RandomStep, stepsBefore } from './run-histories.js';
import { RunModel } from './run-model.js';
import { RunSession, step } from './run-session.js';

const QUEUES = ['default', 'one', 'two'];

interface QueuedStep extends RandomStep {
  readonly queue: number;
}

type Event =
  | { readonly do: 'succeed' | 'fail' | 'revoke' | 'rerun' | 'delete'; readonly which: number }
  | { readonly do: 'retry' }
  | { readonly do: 'grow'; readonly added: readonly QueuedStep[] };

/** How what an event has caused arrives. */
type Carriage = 'once' | 'twice' | 'late';

const queuedStep: fc.Arbitrary<QueuedStep> = fc.record({ ...randomStep(3), queue: fc.nat(QUEUES.length - 1) });

const which = fc.nat(30);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('succeed' as const), which }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('fail' as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('revoke' as const, 'rerun' as const, 'delete' as const), which }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('retry' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('grow' as const), added: fc.array(queuedStep, { maxLength: 3 }) }),
  },
);

const history = fc.record({
  steps: fc.array(queuedStep, { minLength: 1, maxLength: 10 }),
  events: fc.array(fc.tuple(event, fc.constantFrom<Carriage>('once', 'twice', 'late')), { maxLength: 30 }),
  isCancelled: fc.boolean(),
});

/** Plays a history on a broker and on the model. */
class Player {
  readonly model = new RunModel();
  private readonly session: RunSession;
  private readonly queueOf = new Map<string, string>();

  constructor(private readonly driver: Driver) {
    this.session = new RunSession(driver);
  }

  async start(steps: readonly QueuedStep[]): Promise<void> {
    await this.session.begin(this.added(steps));
    this.model.judge();
  }

  async play(one: Event, carriage: Carriage): Promise<void> {
    this.driver.clock.advance(1_000);
    await this.act(one);
    await this.carry(carriage);
    await this.compare();
  }

  /** Cancelled or not, every run comes to an end that leaves nothing. */
  async end(isCancelled: boolean): Promise<void> {
    if (isCancelled && this.model.state === 'running') {
      await this.session.claim('');
      this.session.took(await this.session.workflows.cancel('default', 'wf:1', 'why'));
      this.model.cancel();
      await this.carry('once');
      await this.compare();
    }
    for (let live = this.live(); live.length > 0; live = this.live()) {
      for (const { name } of live) await this.play({ do: 'succeed', which: this.indexOf(name) }, 'once');
    }
    expect(this.model.state).not.toBe('running');
    await this.session.expectNothingLeft();
    const queues = Object.values(await this.driver.world.dump());
    expect(queues.flatMap(({ tasks }) => Object.keys(tasks))).toEqual([]);
  }

  async compare(): Promise<void> {
    expect(await this.session.states()).toEqual([this.model.state, this.model.states]);
  }

  async carry(carriage: Carriage): Promise<void> {
    if (carriage === 'late') this.session.lose();
    else await this.session.relay(carriage === 'twice' ? 2 : 1);
    await this.session.keep();
  }

  private live() {
    return this.model.steps.filter(({ task }) => task === 'live');
  }

  private indexOf(name: string): number {
    return this.live().findIndex((one) => one.name === name);
  }

  private added(steps: readonly QueuedStep[]) {
    return steps.map(({ after, onFailure, optional, queue: at }) => {
      const name = `s${this.model.steps.length}`;
      const before = stepsBefore(this.model, after);
      const queue = QUEUES[at]!;
      this.queueOf.set(name, queue);
      this.model.add(name, before, onFailure, optional);
      return step(name, { after: before, onFailure, optional, message: { queue } });
    });
  }

  private async act(one: Event): Promise<void> {
    const { session, model } = this;
    if (one.do === 'grow') return this.grow(one.added);
    if (one.do === 'retry') return this.retry();
    const isRun = one.do === 'succeed' || one.do === 'fail' || one.do === 'revoke';
    const candidates = model.steps.filter(({ task }) => task === (isRun ? 'live' : 'dead'));
    const chosen = candidates[one.which % candidates.length];
    if (!chosen) return;
    const { name } = chosen;
    const [id, queue] = [taskIdOfStep('wf:1', name), this.queueOf.get(name)!];
    if (one.do === 'rerun') {
      await session.act('run', id, queue);
      chosen.task = 'live';
    } else if (one.do === 'delete') {
      await session.act('delete', id, queue);
      chosen.task = 'gone';
    } else {
      await session.settle(name, one.do === 'succeed' ? 'done' : one.do === 'fail' ? 'archive' : 'revoke');
      if (one.do === 'succeed') model.succeed(chosen);
      else model.fail(chosen, one.do === 'fail' ? 'dead' : 'gone');
    }
  }

  private async grow(steps: readonly QueuedStep[]): Promise<void> {
    if (this.model.state !== 'running') return;
    const added = this.added(steps);
    this.session.know(added);
    expect(this.session.took(await this.session.workflows.grow('default', 'wf:1', added)).status).toBe('added');
    this.model.judge();
  }

  private async retry(): Promise<void> {
    const { session, model } = this;
    const isOver = model.state === 'succeeded' || model.state === 'cancelled';
    const failed = model.steps.filter((one) => one.end === 'failed' && !one.again);
    const reply = session.took(await session.workflows.retry('default', 'wf:1'));
    expect(reply.steps).toBe(isOver ? 0 : failed.length);
    if (!isOver) model.retry();
  }
}

describeRunHistories(
  'random histories of runs are as the model says',
  historyCount(100),
  history,
  async (driver, { steps, events, isCancelled }) => {
    const player = new Player(driver);
    await player.start(steps);
    await player.carry('late');
    await player.compare();
    for (const [one, carriage] of events) await player.play(one, carriage);
    await player.end(isCancelled);
  },
);
