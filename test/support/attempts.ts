import type { Broker } from '../../lib/broker/broker.js';
import { type AttemptEntry, encodeAttempt } from '../../lib/task/attempts.js';
import { newTaskId } from '../../lib/task/task-id.js';
import { request } from './messages.js';

const STACK = 'Error: no parcel\nat ship (/app/ship.js:17:5)\ncaused by: TypeError: no box\nat pack (/app/pack.js:3:1)';

/**
 * A task that is retried: of its attempts the first two are not known, the third and the fourth have failed, at the fifth its server has
 * died. Returns its id, which says that it was enqueued now.
 */
export async function arrangeAttempts(broker: Broker, partial: { id?: string; type?: string } = {}): Promise<string> {
  const now = broker.clock.now();
  const id = partial.id ?? newTaskId(now);
  const made = request({ id, type: partial.type ?? 'order:fulfil', retried: 2, maxRetry: 9 });
  await broker.producer.enqueue('default', [made]);
  const server = 'web-1:4242:018bcfe5-687b-7abc-8abc-0123456789ab';
  const failed = { outcome: 'failed', counts: true, server, error: 'no parcel', stack: STACK } as const;
  const entries: readonly Omit<AttemptEntry, 'startedAt'>[] = [
    { ...failed, retried: 2, endedAt: now - 60_000, duration: 1_500 },
    { ...failed, retried: 3, endedAt: now - 30_000, duration: 0, error: 'no <b>box</b>', stack: undefined },
    {
      outcome: 'crashed',
      retried: 4,
      counts: true,
      server: 'web-2:7',
      endedAt: now - 5_000,
      duration: undefined,
      error: 'asynq: task lease expired',
      stack: undefined,
    },
  ];
  for (const entry of entries) {
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const { lease, message } = tasks[0]!;
    const [retried, lastFailedAt] = [message.retried + 1, Math.floor(entry.endedAt / 1000)];
    const retryAt = Math.floor(now / 1000) + (entry === entries.at(-1) ? 3_600 : 0);
    const attempt = { text: encodeAttempt({ ...entry, startedAt: undefined }), most: 10 };
    const next = { ...message, retried, lastFailedAt, errorMsg: entry.error };
    const settlement = { kind: 'retry', lease, message: next, retryAt, countAsFailure: true, attempt } as const;
    await broker.consumer.exchange('default', { settle: [settlement], take: 0 });
    await broker.maintenance.forward('default');
  }
  return id;
}
