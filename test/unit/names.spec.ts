import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { ManualClock } from '../../lib/clock.js';
import { InvalidOptionError, InvalidTaskError } from '../../lib/errors.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { readPeriodicOptions } from '../../lib/scheduler/options.js';
import { checkQueue, resolveServerOptions } from '../../lib/server/options.js';
import { defineTask } from '../../lib/task/definition.js';
import { request } from '../support/messages.js';

const NAMES = ['mail}:eu', '}', '{mail}', 'a{b'];

describe.each(NAMES)('the name %s, which would be read as part of a key', (name) => {
  const setUp = () => {
    const broker = new MemoryBroker(new ManualClock());
    return { broker, client: new AsynqClient(broker), inspector: new AsynqInspector(broker) };
  };
  const says = (what: string) =>
    expect.objectContaining({ message: expect.stringContaining(`${what} ${JSON.stringify(name)} has a brace`) });

  it.each(['queue', 'taskId', 'group'] as const)(
    'is refused as %s of a task, before anything is written',
    async (option) => {
      const { broker, client } = setUp();
      await expect(client.enqueue('t', undefined, { [option]: name })).rejects.toThrow(InvalidTaskError);
      await expect(client.enqueue('t', undefined, { [option]: name })).rejects.toThrow(says(option));
      const [result] = await client.enqueueMany([{ type: 't', options: { [option]: name } }]);
      expect(result?.error).toEqual(says(option));
      expect(() => defineTask('t', { [option]: name })).toThrow(says(option));
      expect(() => new AsynqClient(broker, { defaults: { [option]: name } })).toThrow(says(option));
      expect(() => readPeriodicOptions({ [option]: name }, 'periodic task')).not.toThrow(InvalidOptionError);
      expect(await broker.inspection.queues()).toEqual([]);
    },
  );

  it('is refused as a queue of a server, and as the id of a periodic entry', () => {
    expect(() => resolveServerOptions({ queues: [name] })).toThrow(says('queue name'));
    expect(() => resolveServerOptions({ queues: { [name]: 1 } })).toThrow(InvalidOptionError);
    expect(() => checkQueue(name, 1)).toThrow(says('queue name'));
    expect(() => readPeriodicOptions({ id: name }, 'periodic task')).toThrow(says('periodic task: id'));
  });

  it('is a valid type: Go may use it, and no key ends in it', async () => {
    const { client } = setUp();
    expect((await client.enqueue(name, undefined, { unique: '1h' })).type).toBe(name);
  });

  it('can be inspected, paused and deleted where Go has such a queue, and is not paused where there is none', async () => {
    const { broker, inspector } = setUp();
    await expect(inspector.pauseQueue(name)).rejects.toThrow(says('queue name'));
    await broker.producer.enqueue(name, [request({ queue: name, id: name })]);
    expect(await inspector.pauseQueue(name)).toBe(true);
    expect(await inspector.unpauseQueue(name)).toBe(true);
    expect(await inspector.getTaskInfo(name, name)).toMatchObject({ id: name, queue: name });
    await inspector.archiveTask(name, name);
    await inspector.deleteQueue(name, { force: true });
    expect(await inspector.queues()).toEqual([]);
  });
});
