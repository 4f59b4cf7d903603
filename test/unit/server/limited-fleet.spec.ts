import { afterEach, describe, expect, it } from 'vitest';
import type { Broker } from '../../../lib/broker/broker.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskContext } from '../../../lib/task/context.js';
import type { TaskLimits } from '../../../lib/task/limits.js';
import { fairHeader, request } from '../../support/messages.js';
import { numbers } from '../../support/numbers.js';
import { manualClock, turn } from '../../support/server-rig.js';

/** By how much the clock moves, at most, in one step: also between a look of a server at it and the start of the handler. */
const STEP_MS = 20;
const [MAX, WINDOW, TOKENS, KEYS, TASKS, FAULTS] = [5, 1_000, 3, 4, 160, 12];
/** After this time, by the clock of the test, a task that has not run never will. */
const PATIENCE_MS = 600_000;

const ROLES = ['producer', 'consumer', 'maintenance', 'monitoring', 'limiting', 'listing', 'seats'] as const;

/** One process: a dead one makes no call and hears of none, one that stands still does so later. */
interface Life {
  dead: boolean;
  stillUntil: number;
}

function brokerOf(memory: MemoryBroker, clock: ManualClock, random: () => number, life: Life): Broker {
  const never = new Promise<never>(() => undefined);
  const pass = (): Promise<void> => {
    const delay = random() < 0.03 ? 150 * random() : 1;
    return new Promise((resolve) => clock.after(Math.max(life.stillUntil - clock.now(), delay), resolve));
  };
  const role = <T extends object>(part: T, more: object = {}): T =>
    new Proxy(part, {
      get(target, property) {
        if (property in more) return Reflect.get(more, property);
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          if (random() < 0.5) await pass();
          if (life.dead) return never;
          const reply: unknown = await Reflect.apply(value, target, args);
          await pass();
          return life.dead ? never : reply;
        };
      },
    });
  const roles = new Map<PropertyKey, object>(ROLES.map((name) => [name, role(memory[name])]));
  roles.set('limiting', role(memory.limiting, { firstAllowance: 50 }));
  return new Proxy(memory, { get: (target, name) => roles.get(name) ?? Reflect.get(target, name, target) });
}

interface Kind {
  readonly name: string;
  limits(max: number): TaskLimits | undefined;
  /** Whether each key has limits of its own, and whether the queue is fair. */
  readonly byKey?: boolean;
  readonly isFair?: boolean;
  /** How many run at a time: of the fleet, or of a process. */
  readonly most?: number;
  readonly hasRate?: boolean;
}

const rateLimit = (max: number) => ({ max, per: WINDOW });
const KINDS: Kind[] = [
  { name: 'a rate', limits: (max) => ({ rateLimit: rateLimit(max) }), hasRate: true },
  { name: 'a rate per key', limits: (max) => ({ rateLimit: rateLimit(max) }), byKey: true, hasRate: true },
  { name: 'tokens', limits: () => ({ globalConcurrency: TOKENS }), most: TOKENS },
  { name: 'tokens per key', limits: () => ({ globalConcurrency: TOKENS }), byKey: true, most: TOKENS },
  {
    name: 'a rate and tokens',
    limits: (max) => ({ rateLimit: rateLimit(max), globalConcurrency: TOKENS }),
    most: TOKENS,
    hasRate: true,
  },
  { name: 'a fair queue', limits: () => undefined, byKey: true, isFair: true, most: TOKENS, hasRate: true },
];

interface Process {
  readonly server: Server;
  readonly life: Life;
  /** What runs there. */
  readonly running: Set<string>;
}

/** Servers whose processes are killed, stand still and are replaced, and what an observer outside has seen. */
class Fleet {
  readonly clock = manualClock();
  readonly memory = new MemoryBroker(this.clock);
  readonly processes: Process[] = [];
  /** Those that end what they run, and begin nothing. */
  readonly stopping = new Set<Process>();
  /** Tasks that were deleted. */
  readonly gone = new Set<string>();
  readonly ran = new Set<string>();
  readonly starts = new Map<string, number[]>();
  most = 0;
  made = 0;

  constructor(
    readonly kind: Kind,
    readonly random: () => number,
  ) {
    if (kind.isFair) this.memory.fairQueues.add('default');
  }

  /** @param max of its rate. @param handles `false`: a deploy without the handler */
  async begin(max = MAX, handles = true): Promise<void> {
    const { clock, kind, random } = this;
    const life: Life = { dead: false, stillUntil: 0 };
    const running = new Set<string>();
    const handle = async ({ id, payload }: TaskContext): Promise<void> => {
      const key = kind.byKey ? payload.toString() : '';
      this.starts.set(key, [...(this.starts.get(key) ?? []), clock.now()]);
      const name = `${key}\n${id}`;
      running.add(name);
      const all = [...this.processes, ...this.stopping].flatMap((one) => [...one.running]);
      this.most = Math.max(this.most, all.filter((one) => one.startsWith(`${key}\n`)).length);
      const time = random() < 0.05 ? 3_000 * random() : 30 * random();
      await new Promise<void>((resolve) => clock.after(time, resolve));
      if (life.dead) return;
      running.delete(name);
      this.ran.add(id);
    };
    const limits = kind.limits(max);
    const limitKey = ({ payload }: TaskContext): string => payload.toString();
    const limited = { ...(limits && { limits }), ...(limits && kind.byKey && { limitKey }) };
    const handlers = handles ? [{ pattern: 't', handle, ...limited }] : [{ pattern: 'other', handle: () => undefined }];
    const broker = brokerOf(this.memory, clock, random, life);
    const server = new Server({ broker, handlers, options: { concurrency: 6, retryDelay: () => 1_000 } });
    this.processes.push({ server, life, running });
    await Promise.race([server.start(), this.pass(2_000)]);
  }

  /** Servers without the handler retry them again and again. */
  async add(count: number): Promise<void> {
    const requests = Array.from({ length: count }, () => {
      const key = `k${this.made % KEYS}`;
      const headers = this.kind.isFair
        ? fairHeader(key, { rate: MAX, window: WINDOW, concurrency: TOKENS })
        : undefined;
      return request({
        id: `t${this.made++}`,
        type: 't',
        maxRetry: 10_000,
        payload: Buffer.from(key),
        ...(headers && { headers }),
      });
    });
    await this.memory.producer.enqueue('default', requests);
  }

  async step(): Promise<void> {
    const { clock } = this;
    clock.moveTo(Math.min(clock.nextDue() ?? Infinity, clock.now() + STEP_MS));
    await turn(3);
  }

  async pass(milliseconds: number): Promise<void> {
    for (const end = this.clock.now() + milliseconds; this.clock.now() < end;) await this.step();
  }

  private take(): Process | undefined {
    return this.processes.splice(Math.floor(this.random() * this.processes.length), 1)[0];
  }

  private stop(): void {
    const one = this.take();
    if (!one) return;
    this.stopping.add(one);
    void one.server.shutdown().then(() => this.stopping.delete(one));
  }

  /** What happens next. */
  async suffer(): Promise<void> {
    const { random, memory } = this;
    const faults: (() => unknown)[] = [
      async () => {
        const dead = this.take();
        if (dead) dead.life.dead = true;
        await this.pass(1_000 * random());
        await this.begin(random() < 0.5 ? MAX : 3);
      },
      async () => {
        this.stop();
        await this.begin(random() < 0.5 ? MAX : 2);
      },
      async () => {
        this.stop();
        await this.begin(MAX, false);
      },
      () => {
        const [one] = this.processes;
        if (one) one.life.stillUntil = this.clock.now() + 12_000 * random();
      },
      async () => {
        await memory.administration.pauseQueue('default');
        await this.pass(3_000 * random());
        await memory.administration.resumeQueue('default');
      },
      async () => {
        const status = await memory.administration.deleteQueue('default', { force: true });
        if (status === 'deleted') {
          for (let number = 0; number < this.made; number++) this.gone.add(`t${number}`);
          if (this.kind.isFair) this.starts.clear(); // what was counted of its keys goes with the queue
        }
        await this.add(40);
      },
      async () => {
        const { tasks } = await memory.listing.listTasks('default', { state: 'held', size: 5 });
        const [run, ...others] = tasks.map(({ message }) => message.id);
        if (run !== undefined) await memory.administration.moveTasks('default', 'run', [run]);
        if (others.length > 0) await memory.administration.moveTasks('default', 'delete', others);
        for (const id of others) this.gone.add(id);
      },
    ];
    await faults[Math.floor(random() * faults.length)]!();
  }

  /** Each task has run, or was deleted. */
  get isDone(): boolean {
    for (let number = 0; number < this.made; number++) {
      if (!this.ran.has(`t${number}`) && !this.gone.has(`t${number}`)) return false;
    }
    return true;
  }
}

describe('a fleet whose servers are killed, stand still and are replaced, while tasks are run and deleted by hand', () => {
  let fleet: Fleet | undefined;

  afterEach(async () => {
    const closing = Promise.all(fleet?.processes.map(({ server }) => server.shutdown()) ?? []);
    let isClosed = false;
    void closing.then(() => (isClosed = true));
    while (!isClosed) await fleet!.pass(500);
  });

  it.each(KINDS)('keeps $name, and runs each task', async (kind) => {
    const one = (fleet = new Fleet(kind, numbers(7_936)));
    for (let index = 0; index < 3; index++) await one.begin();
    await one.add(TASKS / 2);
    for (let count = 0; count < FAULTS; count++) {
      await one.pass(500 + 3_000 * one.random());
      await one.suffer();
    }
    await one.add(TASKS / 2);
    await one.begin();
    for (const end = one.clock.now() + PATIENCE_MS; !one.isDone;) {
      expect(one.clock.now()).toBeLessThan(end);
      await one.step();
    }
    if (kind.most !== undefined) expect(one.most).toBe(kind.most);
    for (const times of kind.hasRate ? one.starts.values() : []) {
      times.sort((a, b) => a - b);
      for (let at = MAX; at < times.length; at++)
        expect(times[at]! - times[at - MAX]!).toBeGreaterThanOrEqual(WINDOW - 2 * STEP_MS);
    }
  });
});
