import fc from 'fast-check';
import { expect } from 'vitest';
import type { LeasedTask, Settlement } from '../../lib/broker/broker.js';
import { type NewStep, taskIdOfStep } from '../../lib/broker/workflows.js';
import { archival, completion, done, type Driver } from './driver.js';
import { historyCount } from './property-stores.js';
import { describeRunHistories, randomStep, type RandomStep, stepsBefore } from './run-histories.js';
import { RunModel } from './run-model.js';
import { RunSession, step } from './run-session.js';

/** A short one, and one whose links need no filling. */
const IDS = ['wf:1', `wf/${'é'.repeat(150)}/b`];
const SUCCESSES = ['done', 'result', 'binary', 'written', 'overwritten', 'kept', 'kept result'] as const;
const ENDINGS = [...SUCCESSES, ...SUCCESSES, 'archive', 'revoke', 'open'] as const;
type Ending = (typeof ENDINGS)[number];

interface NamedStep extends RandomStep {
  readonly unique: boolean;
  readonly long: boolean;
}

interface Round {
  readonly endings: readonly Ending[];
  readonly then: 'nothing' | 'grow' | 'retry' | 'rerun';
  readonly run: number;
  readonly added: readonly NamedStep[];
}

const namedStep: fc.Arbitrary<NamedStep> = fc.record({
  ...randomStep(4),
  unique: fc.nat(5).map((n) => n === 0),
  long: fc.nat(2).map((n) => n === 0),
});

const steps = fc.array(namedStep, { minLength: 1, maxLength: 14 });

const round: fc.Arbitrary<Round> = fc.record({
  endings: fc.array(fc.constantFrom(...ENDINGS), { minLength: 1, maxLength: 12 }),
  then: fc.constantFrom('nothing', 'nothing', 'nothing', 'grow', 'retry', 'rerun'),
  run: fc.nat(IDS.length - 1),
  added: fc.array(namedStep, { minLength: 1, maxLength: 2 }),
});

const history = fc.tuple(fc.tuple(steps, steps), fc.array(round, { maxLength: 10 }));

/** Plays a history on a broker, and on a model of each run. */
class Player {
  private readonly runs;
  private readonly active = new Map<string, LeasedTask>();
  private readonly results = new Map<string, Buffer>();
  private count = 0;

  constructor(private readonly driver: Driver) {
    this.runs = IDS.map((id) => ({ id, session: new RunSession(driver, id), model: new RunModel() }));
  }

  async start(all: readonly (readonly NamedStep[])[]): Promise<void> {
    for (const [n, { session, model }] of this.runs.entries()) {
      await session.start(this.added(n, all[n]!));
      model.judge();
    }
    await this.exchange([]);
  }

  async play({ endings, then, run, added }: Round): Promise<void> {
    this.driver.clock.advance(1_000);
    const settlements: Settlement[] = [];
    const tasks = [...this.active.values()];
    for (const [n, task] of tasks.entries()) {
      const settlement = await this.settlement(task, endings[n % endings.length]!);
      if (settlement) settlements.push(settlement);
    }
    await this.exchange(settlements);
    const { session, model, id } = this.runs[run]!;
    if (then === 'grow' && model.state === 'running') {
      expect(await session.grow(...this.added(run, added))).toBe('added');
      model.judge();
    } else if (then === 'retry' && model.state !== 'succeeded') {
      session.took(await session.workflows.retry('default', id));
      model.retry();
    } else if (then === 'rerun') {
      for (const one of model.steps.filter(({ task }) => task === 'dead')) {
        await session.act('run', taskIdOfStep(id, one.name));
        one.task = 'live';
      }
    }
    await this.exchange([]);
    await this.compare();
  }

  async end(): Promise<void> {
    while (this.active.size > 0) await this.play({ endings: SUCCESSES, then: 'nothing', run: 0, added: [] });
    for (const { session } of this.runs) {
      expect(session.took(await session.workflows.delete('default', session.id)).status).toBe('deleted');
      await session.relay();
    }
    await this.runs[0]!.session.keep();
  }

  private added(n: number, list: readonly NamedStep[]): NewStep[] {
    const { id, model } = this.runs[n]!;
    return list.map(({ unique, long, after, onFailure, optional }) => {
      const { length } = model.steps;
      const name = `${long ? 'ü/'.repeat(45) : 'in/'.repeat(length % 2)}s${length}`;
      const before = stepsBefore(model, after);
      model.add(name, before, onFailure, optional);
      const lock = { message: { uniqueKey: `asynq:{default}:unique:${n}${name}` }, request: { uniqueTtl: 9999 } };
      return step(name, { after: before, onFailure, optional, ...(unique ? lock : {}) }, id);
    });
  }

  /** Settles all, and claims all that can be claimed: the tasks of the steps that the model says. */
  private async exchange(settlements: Settlement[]): Promise<void> {
    const reply = await this.driver.exchange(settlements, 1000);
    expect(reply.settled).toEqual(settlements.map(() => 'settled'));
    const { session } = this.runs[0]!;
    session.took(reply);
    await session.relay();
    for (const { lease } of settlements) this.active.delete(lease.id);
    for (const task of [...reply.tasks, ...(await this.driver.exchange([], 1000)).tasks]) {
      const { id } = task.lease;
      expect(this.active.has(id)).toBe(false);
      const { run, found } = this.stepOf(id);
      expect(task.links).toContainEqual(expect.objectContaining({ k: 'r', to: 'default', run, step: found.name }));
      this.active.set(id, task);
    }
    const live = this.runs.flatMap(({ id, model }) =>
      model.steps.filter(({ task }) => task === 'live').map(({ name }) => taskIdOfStep(id, name)),
    );
    expect([...this.active.keys()].toSorted()).toEqual(live.toSorted());
  }

  private stepOf(task: string) {
    const { id: run, model } = this.runs.find(({ id }) => task.startsWith(taskIdOfStep(id, '')))!;
    return { run, model, found: model.steps.find(({ name }) => taskIdOfStep(run, name) === task)! };
  }

  private async settlement(task: LeasedTask, ending: Ending): Promise<Settlement | undefined> {
    if (ending === 'open') return undefined;
    const { id } = task.lease;
    const { model, found } = this.stepOf(id);
    if (ending === 'archive' || ending === 'revoke') {
      model.fail(found, ending === 'archive' ? 'dead' : 'gone');
      return ending === 'archive' ? { ...archival(task), reason: 'boom' } : { ...done(task), revoked: true };
    }
    model.succeed(found);
    const result = Buffer.from(
      ending === 'binary' ? [0, 255, 0, 128, this.count++ % 256] : `${ending} ${this.count++}`,
    );
    const written = ending === 'written' || ending === 'overwritten';
    if (written) expect(await this.driver.broker.consumer.writeResult(task.lease, Buffer.from(`w${id}`))).toBe(true);
    const given = ending === 'done' || ending === 'written' || ending === 'kept' ? undefined : result;
    const kept = written ? Buffer.from(`w${id}`) : this.results.get(`kept ${id}`);
    if (written) this.results.set(`kept ${id}`, kept!);
    const stored = given ?? kept;
    if (stored) this.results.set(id, stored);
    else this.results.delete(id);
    if (ending.startsWith('kept')) return completion(task, this.driver.now + 86_400, given);
    return { ...done(task), result: given };
  }

  private async compare(): Promise<void> {
    for (const { id, session, model } of this.runs) {
      expect(await session.states()).toEqual([model.state, model.states]);
      const names = model.steps.map(({ name }) => name);
      const results = await session.workflows.results('default', id, names);
      expect(results.map((one) => one?.toString('hex'))).toEqual(
        model.steps.map(({ name, end }) =>
          end === 'succeeded' ? this.results.get(taskIdOfStep(id, name))?.toString('hex') : undefined,
        ),
      );
    }
  }
}

describeRunHistories(
  'steps of several runs that end together are as the model says',
  historyCount(40),
  history,
  async (driver, [all, rounds]) => {
    const player = new Player(driver);
    await player.start(all);
    for (const one of rounds) await player.play(one);
    await player.end();
  },
);
