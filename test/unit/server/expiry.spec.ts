import { describe, expect, it, vi } from 'vitest';
import { AsynqClient } from '../../../lib/client/client.js';
import type { AsynqEventMap } from '../../../lib/events/events.js';
import { InvalidTaskError, TaskExpiredError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { defineTask } from '../../../lib/task/definition.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import type { EnqueueOptions } from '../../../lib/client/types.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import { manualClock, rig } from '../../support/server-rig.js';

const START = 1_700_000_000_000;
const HEADER = 'asynq-expires-at';

function setUp(handle: () => unknown = () => undefined, options: ServerOptions = {}) {
  const clock = manualClock();
  const handler = vi.fn(handle);
  const made = rig({ t: handler }, options, clock);
  const client = new AsynqClient(made.memory);
  const expired: AsynqEventMap['taskExpired'][] = [];
  made.server.events.on('taskExpired', (event) => expired.push(event));
  const add = (given: EnqueueOptions<unknown>) => client.enqueue('t', undefined, given);
  const stored = (id: string) => made.memory.inspection.getTask('default', id);
  return { ...made, clock, handler, client, expired, add, stored };
}

describe('a task that expires', () => {
  it('runs when it begins in time', async () => {
    const { clock, server, handler, expired, add } = setUp();
    const { expiresAt, headers } = await add({ expiresIn: '5m' });
    expect([expiresAt, headers]).toEqual([new Date(START + 300_000), { [HEADER]: `${START + 300_000}` }]);
    clock.advance(300_000);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'done' }]);
    expect([handler.mock.calls.length, expired]).toEqual([1, []]);
  });

  it('is archived when it does not, and no hook is called', async () => {
    const onError = vi.fn();
    const { clock, server, handler, expired, add, stored } = setUp(undefined, { onError });
    const { id } = await add({ expiresIn: '5m' });
    clock.advance(300_001);
    const [outcome] = await server.runOnce();
    expect(outcome).toMatchObject({ outcome: 'archived', retried: 0 });
    expect(outcome!.error).toBeInstanceOf(TaskExpiredError);
    expect(await stored(id)).toMatchObject({
      state: 'archived',
      message: {
        retried: 0,
        errorMsg:
          'the task has expired (expiresIn): it was to begin by 2023-11-14T22:18:20.000Z, and was claimed at 2023-11-14T22:18:20.001Z',
      },
    });
    expect(expired).toEqual([
      { task: { id, type: 't', queue: 'default' }, expiredAt: new Date(START + 300_000), onExpiry: 'archive' },
    ]);
    expect([handler.mock.calls.length, onError.mock.calls.length]).toEqual([0, 0]);
  });

  it('is dropped when it is to be', async () => {
    const { clock, server, expired, add, stored } = setUp();
    const { id, headers } = await add({ expiresIn: 100, onExpiry: 'drop' });
    expect(headers).toEqual({ [HEADER]: `${START + 100} drop` });
    clock.advance(101);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'revoked', error: { code: 'ASYNQ_TASK_EXPIRED' } }]);
    expect(await stored(id)).toBeUndefined();
    expect(expired).toMatchObject([{ onExpiry: 'drop' }]);
  });

  it.each([
    ['processIn', { processIn: 600_000 }],
    ['processAt', { processAt: new Date(START + 600_000) }],
  ])('has its time from when it is due, with %s', async (_, when) => {
    const { expiresAt } = await setUp().add({ ...when, expiresIn: '5m' });
    expect(expiresAt).toEqual(new Date(START + 900_000));
  });

  it('does not expire between two attempts', async () => {
    let failures = 1;
    const flaky = (): void => {
      if (failures-- > 0) throw new Error('boom');
    };
    const { clock, server, handler, add } = setUp(flaky, { retryDelay: () => 600_000 });
    await add({ expiresIn: '5m' });
    await server.runOnce();
    clock.advance(600_000);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'done' }]);
    expect(handler).toHaveBeenCalledTimes(2);
  });

  it('expires after a postponement, which is no attempt', async () => {
    const postpone = (): never => {
      throw new PostponeTask('10m');
    };
    const { clock, server, add } = setUp(postpone);
    await add({ expiresIn: '5m' });
    await server.runOnce();
    clock.advance(600_000);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'archived', error: { code: 'ASYNQ_TASK_EXPIRED' } }]);
  });

  it('runs when somebody runs it by hand after that', async () => {
    const { clock, server, memory, handler, add } = setUp();
    const { id } = await add({ expiresIn: '5m' });
    clock.advance(300_001);
    await server.runOnce();
    await new AsynqInspector(memory).runTask('default', id);
    await server.runOnce();
    expect(handler).toHaveBeenCalledOnce();
  });

  it('expires also where no handler knows it', async () => {
    const { clock, server, client } = setUp();
    await client.enqueue('unknown', undefined, { expiresIn: '5m' });
    clock.advance(300_001);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'archived', error: { code: 'ASYNQ_TASK_EXPIRED' } }]);
  });

  it('has its expiry from the definition, unless the call gives another or none', async () => {
    const { client } = setUp();
    const Refresh = defineTask('t', { expiresIn: '1m', onExpiry: 'drop', headers: { tenant: 'acme' } });
    const all = [await client.enqueue(Refresh), await client.enqueue(Refresh, undefined, { onExpiry: 'archive' })];
    all.push(await client.enqueue(Refresh, undefined, { expiresIn: 0 }));
    expect(all.map(({ headers }) => headers)).toEqual([
      { tenant: 'acme', [HEADER]: `${START + 60_000} drop` },
      { tenant: 'acme', [HEADER]: `${START + 60_000}` },
      { tenant: 'acme' },
    ]);
  });

  it.each([
    [{ expiresIn: -1 }, /^expiresIn must not be negative, as -1 is; set 0 for a task that does not expire$/],
    [{ expiresIn: 'soon' as never }, /^expiresIn: "soon" is not a duration/],
    [{ onExpiry: 'delete' as never }, /^onExpiry must be "archive" or "drop", not "?delete"?$/],
    [
      { expiresIn: 300_000, group: 'g' },
      /^task "t" has expiresIn and group "g": .* cannot expire; leave one of them out/,
    ],
  ])('is refused with %o', async (given, message) => {
    const { add, memory } = setUp();
    const refused = add(given);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toBeInstanceOf(InvalidTaskError);
    expect(memory.tasks()).toEqual([]);
  });

  it('does not expire when its header cannot be read', async () => {
    const { clock, server, add } = setUp();
    await add({ headers: { [HEADER]: 'tomorrow' } });
    clock.advance(86_400_000_000);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'done' }]);
  });
});

describe('a task whose deadline has passed', () => {
  it('is archived when it is claimed, whatever retries are left', async () => {
    const { clock, server, handler, add, stored } = setUp();
    const { id } = await add({ deadline: new Date(START + 5_000) });
    clock.advance(5_000);
    expect(await server.runOnce()).toMatchObject([{ outcome: 'archived', retried: 0, maxRetry: 25 }]);
    expect(handler).not.toHaveBeenCalled();
    expect(await stored(id)).toMatchObject({
      state: 'archived',
      message: {
        retried: 0,
        errorMsg: 'context deadline exceeded; not retried, as its deadline 2023-11-14T22:13:25.000Z has passed',
      },
    });
  });

  it('is archived when it fails then, and what is no failure, too', async () => {
    const setup = setUp(
      () => {
        setup.clock.advance(5_000);
        throw new Error('boom');
      },
      { isFailure: () => false },
    );
    const { id } = await setup.add({ deadline: new Date(START + 5_000) });
    expect(await setup.server.runOnce()).toMatchObject([
      { outcome: 'archived', error: { code: 'ASYNQ_DEADLINE_EXCEEDED' } },
    ]);
    expect((await setup.stored(id))?.state).toBe('archived');
  });

  it('is retried when an attempt ends by its timeout before', async () => {
    const setup = setUp(() => {
      setup.clock.advance(1_000);
      throw new Error('boom');
    });
    await setup.add({ deadline: new Date(START + 60_000), timeout: '1s' });
    expect(await setup.server.runOnce()).toMatchObject([{ outcome: 'retry' }]);
  });
});
