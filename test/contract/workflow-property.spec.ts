import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAILURE_POLICIES, type FailurePolicy } from '../../lib/broker/links.js';
import { taskIdOfStep } from '../../lib/broker/workflows.js';
import { ManualClock } from '../../lib/clock.js';
import { startCluster, startRedis } from '../support/redis.js';
import { Driver, type MakeWorld, START } from './driver.js';
import { memoryWorld } from './memory-world.js';
import { RedisBackdoor } from './redis-world.js';
import { RunModel } from './run-model.js';
import { RunSession, step } from './run-session.js';

/** Set both to run a failed history again: the report of the failure names them. */
const { FC_SEED, FC_PATH, FC_RUNS = '100' } = process.env;
const QUEUES = ['default', 'one', 'two'];

interface RandomStep {
  /** Which of the steps so far it comes after. */
  readonly after: readonly number[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  readonly queue: number;
}

type Event =
  | { readonly do: 'succeed' | 'fail' | 'revoke' | 'rerun' | 'delete'; readonly which: number }
  | { readonly do: 'retry' }
  | { readonly do: 'grow'; readonly added: readonly RandomStep[] };

/** How what an event has caused arrives. */
type Carriage = 'once' | 'twice' | 'late';

const randomStep: fc.Arbitrary<RandomStep> = fc.record({
  after: fc.array(fc.nat(30), { maxLength: 3 }),
  onFailure: fc.constantFrom(...FAILURE_POLICIES),
  optional: fc.boolean(),
  queue: fc.nat(QUEUES.length - 1),
});

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
    arbitrary: fc.record({ do: fc.constant('grow' as const), added: fc.array(randomStep, { maxLength: 3 }) }),
  },
);

const history = fc.record({
  steps: fc.array(randomStep, { minLength: 1, maxLength: 10 }),
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

  async start(steps: readonly RandomStep[]): Promise<void> {
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

  private added(steps: readonly RandomStep[]) {
    return steps.map(({ after, onFailure, optional, queue: at }) => {
      const known = this.model.steps.map(({ name }) => name);
      const name = `s${known.length}`;
      const before = known.length === 0 ? [] : [...new Set(after.map((n) => known[n % known.length]!))];
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

  private async grow(steps: readonly RandomStep[]): Promise<void> {
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

async function replay(makeWorld: MakeWorld, { steps, events, isCancelled }: Awaited<ReturnType<typeof sample>>) {
  const clock = new ManualClock(START);
  const driver = new Driver(await makeWorld(clock), clock);
  try {
    const player = new Player(driver);
    await player.start(steps);
    await player.carry('late');
    await player.compare();
    for (const [one, carriage] of events) await player.play(one, carriage);
    await player.end(isCancelled);
  } finally {
    await driver.world.cleanup();
  }
}

const sample = async () => fc.sample(history, 1)[0]!;

function expectAsModel(makeWorld: MakeWorld, runs: number): Promise<void> {
  const property = fc.asyncProperty(history, (one) => replay(makeWorld, one));
  const again = FC_SEED === undefined ? {} : { seed: Number(FC_SEED), path: FC_PATH };
  return fc.assert(property, { numRuns: runs, ...again });
}

describe('random histories of runs are as the model says', () => {
  const runs = Number(FC_RUNS);

  it('in memory', () => expectAsModel(async (clock) => memoryWorld(clock), runs), 120_000);

  describe('on Redis', () => {
    let redis: Awaited<ReturnType<typeof startRedis>>;
    let backdoor: RedisBackdoor;
    beforeAll(async () => {
      redis = await startRedis();
      backdoor = new RedisBackdoor([{ host: '127.0.0.1', port: redis.port }]);
    });
    afterAll(async () => {
      backdoor.close();
      await redis.stop();
    });
    it('of one node', () => expectAsModel((clock) => backdoor.world(clock), runs), 120_000);
  });

  describe('on a cluster', () => {
    let cluster: Awaited<ReturnType<typeof startCluster>>;
    let backdoor: RedisBackdoor;
    beforeAll(async () => {
      cluster = await startCluster(3);
      backdoor = new RedisBackdoor(cluster.nodes);
    });
    afterAll(async () => {
      backdoor.close();
      await cluster.stop();
    });
    it('of three nodes', () => expectAsModel((clock) => backdoor.world(clock), Math.ceil(runs / 4)), 120_000);
  });
});
