import type { Broker, LeasedTask } from '../../lib/broker/broker.js';
import { request } from './messages.js';

/** The task `order-17`, active, with a step of each kind, as the server stores them. */
export async function arrangeSteps(broker: Broker): Promise<LeasedTask> {
  await broker.producer.enqueue('default', [request({ id: 'order-17', type: 'order:fulfil' })]);
  const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
  const at = broker.clock.now();
  const until = at + 7 * 86_400_000;
  const heads: readonly (readonly [name: string, head: object, result?: unknown])[] = [
    ['capture', { n: 0, kind: 'run', ended: at + 1_500, undo: true }, { captureId: 'c-7' }],
    ['approved', { n: 1, kind: 'wait', until, signal: 'approval' }],
    ['invoice', { n: 2, kind: 'call', queue: 'render', id: 'invoice-17' }],
    ['ship', { n: 3, kind: 'run', tries: 2, error: 'no parcel', until: at + 60_000 }],
    ['rows', { n: 4, kind: 'each', done: 40, cursor: 'row-40' }],
    ['undo:capture', { n: 0, kind: 'undo', ended: at + 2_000 }],
    ['!undo', { error: 'no parcel' }],
  ];
  for (const [name, head, result] of heads) {
    const text = `${JSON.stringify({ at, ...head })}\n${result === undefined ? '' : JSON.stringify(result)}`;
    await broker.checkpoints.write(tasks[0]!.lease, name, Buffer.from(text));
  }
  return tasks[0]!;
}

/** The same, when its handler has ended to sleep for a minute. */
export async function arrangeSuspended(broker: Broker): Promise<void> {
  const { lease } = await arrangeSteps(broker);
  const wakeAt = Math.floor(broker.clock.now() / 1000) + 60;
  await broker.consumer.exchange('default', { settle: [{ kind: 'sleep', lease, wakeAt }], take: 0 });
}
