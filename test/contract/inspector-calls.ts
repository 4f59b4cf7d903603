import fc from 'fast-check';
import type { Broker } from '../../lib/broker/broker.js';
import { AsynqError } from '../../lib/errors.js';
import type { MovableState } from '../../lib/inspector/bulk.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { STORED_STATES } from '../../lib/wire/states.js';

type Action = 'run' | 'archive' | 'delete';

/** A call of the inspector. */
export type InspectorCall =
  | { readonly call: 'move'; readonly action: Action; readonly queue: string; readonly id: string }
  | {
      readonly call: 'moveAll';
      readonly action: Action;
      readonly queue: string;
      readonly state: MovableState;
      readonly group: string;
    }
  | { readonly call: 'update'; readonly queue: string; readonly id: string; readonly payload: Uint8Array }
  | { readonly call: 'reschedule'; readonly queue: string; readonly id: string; readonly delay: number }
  | { readonly call: 'deleteQueue'; readonly queue: string; readonly force: boolean }
  | { readonly call: 'look'; readonly queue: string };

const STATES = [...STORED_STATES, 'held'] as const;

interface Names {
  readonly queue: fc.Arbitrary<string>;
  readonly id: fc.Arbitrary<string>;
  readonly group: fc.Arbitrary<string>;
}

export function inspectorCall({ queue, id, group }: Names): fc.Arbitrary<InspectorCall> {
  const action = fc.constantFrom('run', 'archive', 'delete');
  const state = fc.constantFrom(...STATES.filter((name) => name !== 'active'));
  const payload = fc.uint8Array({ maxLength: 6 });
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ call: fc.constant('move'), action, queue, id }) },
    { weight: 4, arbitrary: fc.record({ call: fc.constant('moveAll'), action, queue, state, group }) },
    { weight: 1, arbitrary: fc.record({ call: fc.constant('update'), queue, id, payload }) },
    { weight: 3, arbitrary: fc.record({ call: fc.constant('reschedule'), queue, id, delay: fc.nat(90_000) }) },
    { weight: 1, arbitrary: fc.record({ call: fc.constant('deleteQueue'), queue, force: fc.boolean() }) },
    { weight: 3, arbitrary: fc.record({ call: fc.constant('look'), queue }) },
  );
}

/** Makes the call on one broker; returns the result or the error. */
export async function inspect(broker: Broker, call: InspectorCall): Promise<unknown> {
  try {
    return await act(new AsynqInspector(broker), call);
  } catch (error) {
    if (error instanceof AsynqError) return { code: error.code, message: error.message };
    throw error;
  }
}

function act(inspector: AsynqInspector, call: InspectorCall): Promise<unknown> {
  const { queue } = call;
  switch (call.call) {
    case 'move':
      return inspector[`${call.action}Task`](queue, call.id);
    case 'moveAll': {
      const group = call.state === 'aggregating' ? call.group : undefined;
      return inspector[`${call.action}AllTasks`](queue, call.state, { group });
    }
    case 'update':
      return inspector.updateTaskPayload(queue, call.id, Buffer.from(call.payload));
    case 'reschedule':
      return inspector.rescheduleTask(queue, call.id, call.delay);
    case 'deleteQueue':
      return inspector.deleteQueue(queue, { force: call.force });
    case 'look':
      return look(inspector, queue);
  }
}

/** Everything that an inspector returns about a queue, without its memory usage. */
async function look(inspector: AsynqInspector, queue: string): Promise<unknown> {
  const info = { ...(await inspector.getQueueInfo(queue)), memoryUsage: undefined };
  const groups = await inspector.groups(queue);
  const lists = [];
  for (const state of STATES) {
    if (state !== 'aggregating') lists.push(await list(inspector, queue, state));
  }
  for (const { group } of groups) lists.push(await list(inspector, queue, 'aggregating', group));
  return { info, groups, lists, history: await inspector.history(queue, 3) };
}

async function list(inspector: AsynqInspector, queue: string, state: (typeof STATES)[number], group?: string) {
  const tasks = [];
  let cursor: string | undefined;
  do {
    const page = await inspector.listTasks(queue, state, { size: 2, cursor, group });
    tasks.push(...page.tasks, ...page.damaged);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return tasks;
}
