import type { AsynqClient } from '../client/client.js';
import { TestingError } from '../errors.js';
import type { TaskOutcome } from '../events/events.js';
import type { ByHand } from '../server/index.js';
import type { TaskInfo } from '../task/info.js';
import type { CallLinks } from '../task/links.js';
import type { TaskOptions } from '../task/options.js';
import { HandlerWatch } from './handler-watch.js';
import type { InMemoryBroker } from './in-memory-broker.js';
import type { TaskName } from './task-choice.js';
import { alreadyThere, deferred, notRunnable } from './testing.messages.js';

/** Options of a task that runs at once. */
export type WorkOptions = Omit<TaskOptions, 'processAt' | 'processIn' | 'group'> & Pick<CallLinks<never>, 'key'>;

/** One attempt of a task: what the handler returned or threw, and the outcome. */
export interface WorkOutcome<R = unknown> extends TaskOutcome {
  readonly result?: R;
}

type Call = readonly [task: TaskName, payload: unknown, options: WorkOptions];

/** Enqueues a task and runs it once. @throws TestingError when it cannot run */
export async function runAlone(
  client: AsynqClient,
  broker: InMemoryBroker,
  server: ByHand,
  call: Call,
): Promise<WorkOutcome> {
  const info = await enqueueNow(client, broker, call);
  const { queue, id, type, state } = info;
  const leased = broker.take(queue, id);
  if (!leased) throw new TestingError(info.created ? notRunnable(type, state) : alreadyThere(info));
  const outcome = await new HandlerWatch(server, 0).outlast(server.work(leased));
  if (!outcome) throw new TestingError(deferred(type));
  return outcome;
}

/** Enqueues a task so that it is pending, also where its definition delays it. */
async function enqueueNow(
  client: AsynqClient,
  broker: InMemoryBroker,
  [task, payload, options]: Call,
): Promise<TaskInfo> {
  const debounce = options.debounce ?? (typeof task === 'object' ? task.options.debounce : undefined);
  if (!debounce) {
    return client.enqueue(task as string, payload, { ...options, processAt: new Date(broker.clock.now()) });
  }
  const info = await client.enqueue(task as string, payload, options);
  await broker.administration.moveTasks(info.queue, 'run', [info.id]);
  return info;
}
