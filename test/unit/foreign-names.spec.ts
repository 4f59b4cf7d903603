import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { ManualClock } from '../../lib/clock.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { readPeriodicOptions } from '../../lib/scheduler/options.js';
import { resolveQueue } from '../../lib/server/fetching/queue-options.js';
import { defineTask } from '../../lib/task/definition.js';
import { resolveQueueSettings } from '../../lib/task/queue-settings.js';
import { workflow } from '../../lib/workflows/workflow.js';

const client = (): AsynqClient => new AsynqClient(new MemoryBroker(new ManualClock()));
const step = (options: object) => workflow('order').add('mail', 'mail', {}, options as never);

describe('an option that another library has', () => {
  it.each<[string, () => unknown, string]>([
    [
      'limiter of a queue',
      () => resolveQueue('mail', { limiter: {} }),
      'queue "mail": "limiter"; here it is rateLimit',
    ],
    ['attempts of a queue', () => resolveQueue('mail', { attempts: 3 }), 'here it is maxRetry'],
    ['timeout of a queue', () => resolveQueue('mail', { timeout: '1m' }), 'it is an option of a task'],
    ['duration of a rate', () => resolveQueue('mail', { rateLimit: { max: 1, duration: 1 } }), 'here it is per'],
    [
      'a rate without per',
      () => resolveQueue('mail', { rateLimit: { max: 1 } }),
      'rateLimit of queue "mail" has no per',
    ],
    ['limiter of settings', () => resolveQueueSettings({ mail: { limiter: {} } }), 'in server: { queues }, beside it'],
    ['a list of settings', () => resolveQueueSettings(['mail']), 'what a server serves is server: { queues }'],
    ['id of unique', () => defineTask('mail', { unique: { id: 'a' } as never }), "here it is by: 'key'"],
    ['id of debounce', () => defineTask('mail', { debounce: { id: 'a' } as never }), 'here it is key'],
    ['a name first', () => defineTask({ name: 'mail' } as never), "write defineTask('email:welcome', options)"],
    ['id of a schedule', () => readPeriodicOptions({ jobId: 'a' } as never), 'periodic task: "jobId"; here it is id'],
    ['data of a schedule', () => readPeriodicOptions({ data: {} } as never), 'here it is payload'],
    ['ignored failures', () => step({ ignoreDependencyOnFailure: true }), 'here it is optional: true'],
    ['jobId of a step', () => step({ jobId: 'a' }), 'the run gives a task its id'],
    ['attempts of a step', () => step({ attempts: 3 }), 'here it is options: { maxRetry }'],
    ['jobId of a run', () => client().start(step({}), { jobId: 'a' } as never), 'start: "jobId"; here it is id'],
    ['jobId of a task', () => client().enqueue('mail', {}, { jobId: 'a' } as never), "a key with once: '1d' returns"],
    ['a job', () => client().enqueue({ name: 'mail' } as never), "write enqueue('email:welcome', payload, options)"],
    ['a small ttl', () => client().enqueue('mail', {}, { throttle: 5 }), "not 5 milliseconds; give '5s' for seconds"],
    ['an id', () => client().result('17' as never), 'must be a TaskInfo or { queue, id }, not "17"'],
  ])('is named as it is here: %s', async (_, make, text) => {
    await expect((async () => make())()).rejects.toThrow(text);
  });

  it.each([
    ['failed', 'archived'],
    ['delayed', 'scheduled'],
    ['wait', 'pending'],
    ['waiting-children', 'waiting'],
    ['succeeded', 'completed'],
  ])('is named as it is here: the state %s', async (state, here) => {
    const inspector = new AsynqInspector(new MemoryBroker(new ManualClock()));
    await expect(inspector.listTasks('mail', state as never)).rejects.toThrow(`did you mean "${here}"?`);
  });

  it('is named as it is here: of a task of enqueueMany', async () => {
    const [result] = await client().enqueueMany([{ type: 'mail', data: {} } as never]);
    expect((result as { error: Error }).error.message).toContain('"data"; here it is payload');
  });
});
