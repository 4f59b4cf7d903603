import { ManualClock, SystemClock, type Clock } from '../../lib/clock.js';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import type { Broker, EnqueueRequest } from '../../lib/broker/broker.js';
import type { AsynqEventMap, AsynqEventName, TaskOutcome } from '../../lib/events/events.js';
import type { TaskAggregatorEntry } from '../../lib/server/groups/aggregators.js';
import type { TaskHandlerEntry } from '../../lib/server/attempt/handler.js';
import { Server } from '../../lib/server/server.js';
import type { ServerOptions } from '../../lib/server/options.js';
import type { TaskContext } from '../../lib/task/context.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request } from './messages.js';
import { failingBroker } from './failing-broker.js';

type Handle = NonNullable<TaskHandlerEntry['handle']>;

export interface Rig {
  readonly memory: MemoryBroker;
  readonly faults: ReturnType<typeof failingBroker>['faults'];
  readonly calls: ReturnType<typeof failingBroker>['calls'];
  readonly server: Server;
  readonly outcomes: TaskOutcome[];
  readonly events: { name: AsynqEventName; event: unknown }[];
  add(partial?: Partial<TaskMessage>, options?: Omit<EnqueueRequest, 'message'>): Promise<TaskMessage>;
  /** The next event of that name, from now on. */
  next<E extends AsynqEventName>(name: E): Promise<AsynqEventMap[E]>;
  /** Resolves when this many attempts have finished in all. */
  finished(count: number): Promise<void>;
}

const WATCHED: AsynqEventName[] = [
  'handlerStuck',
  'taskDamaged',
  'resultDropped',
  'hookFailed',
  'groupAggregated',
  'aggregationFailed',
  'groupsReclaimed',
  'groupsRepaired',
  'groupNotAggregated',
  'tasksRecovered',
  'queueRepaired',
  'queueUnreachable',
  'queueReachable',
  'loopFailed',
  'wakeUnavailable',
  'shutdownTimedOut',
  'serverClosed',
];

/** A server on a memory broker behind a broker that fails on command. */
export function rig(
  handlers: Record<string, Handle | TaskHandlerEntry>,
  options: ServerOptions = {},
  clock: Clock = new SystemClock(),
  aggregators: readonly TaskAggregatorEntry[] = [],
): Rig {
  const memory = new MemoryBroker(clock);
  const { broker, faults, calls } = failingBroker<Broker>(memory);
  const entries = Object.entries(handlers).map(([pattern, handler]) =>
    typeof handler === 'function' ? { pattern, handle: handler } : handler,
  );
  const server = new Server({ broker, handlers: entries, aggregators, options });
  const outcomes: TaskOutcome[] = [];
  const events: Rig['events'] = [];
  server.events.on('taskFinished', (outcome) => outcomes.push(outcome));
  for (const name of WATCHED) server.events.on(name, (event) => events.push({ name, event }));
  return {
    memory,
    faults,
    calls,
    server,
    outcomes,
    events,
    add: async (partial = {}, requestOptions = {}) => {
      const made = request(partial, requestOptions);
      await memory.producer.enqueue(made.message.queue, [made]);
      return made.message;
    },
    next: (name) =>
      new Promise((resolve) => {
        const off = server.events.on(name, (event) => {
          off();
          resolve(event);
        });
      }),
    finished: (count) =>
      new Promise((resolve) => {
        if (outcomes.length >= count) return resolve();
        const off = server.events.on('taskFinished', () => {
          if (outcomes.length < count) return;
          off();
          resolve();
        });
      }),
  };
}

/** The rigs that `closeRigs` shuts down. */
const open = new Set<Rig>();

/** A rig for this test; call `closeRigs` after each. */
export function openRig(...args: Parameters<typeof rig>): Rig {
  const made = rig(...args);
  open.add(made);
  return made;
}

/** The same with its server started. */
export async function startRig(...args: Parameters<typeof rig>): Promise<Rig> {
  const made = openRig(...args);
  await made.server.start();
  return made;
}

/**
 * Clears the faults of every open rig and shuts it down, its manual clock moved until that is done.
 */
export async function closeRigs(): Promise<void> {
  for (const { server, faults, memory } of open) {
    faults.clear();
    let closed = false;
    const closing = server.shutdown().then(() => (closed = true));
    const { clock } = memory;
    while (clock instanceof ManualClock && !closed) {
      clock.advance(500);
      await turn(2);
    }
    await closing;
  }
  open.clear();
}

/** A manual clock at a whole second. */
export const manualClock = (): ManualClock => new ManualClock(1_700_000_000_000);

/** Lets everything that is ready run; no time passes. */
export const turn = async (times = 5): Promise<void> => {
  for (let count = 0; count < times; count++) await new Promise((resolve) => setImmediate(resolve));
};

/** A handler that waits until the test opens the gate. */
export function gate(): { handle: Handle; open: (value?: unknown) => void; entered: Promise<TaskContext> } {
  let open = (_?: unknown): void => {};
  let enter = (_: TaskContext): void => {};
  const opened = new Promise<unknown>((resolve) => (open = resolve));
  const entered = new Promise<TaskContext>((resolve) => (enter = resolve));
  return {
    open: (value) => open(value),
    entered,
    handle: (task) => {
      enter(task);
      return opened;
    },
  };
}
