import { describe, expect, it } from 'vitest';
import { InvalidOptionError } from '../../../lib/errors.js';
import { resolveServerOptions, type ServerOptions } from '../../../lib/server/options.js';

describe('resolveServerOptions', () => {
  it("applies asynq's defaults", () => {
    expect(resolveServerOptions()).toMatchObject({
      concurrency: 10,
      queues: { default: { priority: 1, concurrency: Infinity, limits: undefined } },
      strictPriority: false,
      taskCheckInterval: 1_000,
      delayedTaskCheckInterval: 5_000,
      shutdownTimeout: 8_000,
      healthCheckInterval: 15_000,
      janitorInterval: 8_000,
      janitorBatchSize: 100,
    });
  });

  it('accepts durations as text and queues as names', () => {
    const options = resolveServerOptions({ shutdownTimeout: '1m30s', queues: ['a', 'b'] });
    expect(options.shutdownTimeout).toBe(90_000);
    expect(options.queues).toMatchObject({ a: { priority: 1 }, b: { priority: 1 } });
  });

  it.each([
    [{ concurency: 5 }, /unknown server option "concurency"; did you mean "concurrency"\?/],
    [{ concurrency: 0 }, /concurrency must be a whole number from 1 .* not 0/],
    [{ concurrency: 2.5 }, /concurrency .* not 2\.5/],
    [{ concurrency: '5' }, /concurrency .* not "5"/],
    [{ queues: {} }, /queues is empty; name at least one/],
    [{ queues: 'low' }, /queues \(a list of names, or priorities or options by name\) must be an object, not "low"/],
    [{ queues: { ' ': 1 } }, /queue name must contain one or more characters/],
    [{ queues: { low: -1 } }, /priority of queue "low" .* not -1/],
    [{ queues: [7] }, /queue name must contain one or more characters, not 7/],
    [{ strictPriority: 'yes' }, /strictPriority must be true or false, not "yes"/],
    [{ taskCheckInterval: '0s' }, /taskCheckInterval must be more than zero/],
    [{ shutdownTimeout: 'soon' }, /shutdownTimeout: "soon" is not a duration/],
    [{ retryDelay: 5 }, /retryDelay must be a function, not 5/],
    [{ janitorBatchSize: 5_000 }, /janitorBatchSize .* not 5000/],
  ])('refuses %j', (options, message) => {
    expect(() => resolveServerOptions(options as never)).toThrow(InvalidOptionError);
    expect(() => resolveServerOptions(options as never)).toThrow(message);
  });
});

describe('the policies of groups', () => {
  const policy = (options: ServerOptions, queue = 'default', group = 'g') =>
    resolveServerOptions(options).groups.policyOf(queue, group);

  it('are those of asynq by default', () => {
    expect(policy({})).toEqual({ gracePeriod: 60, maxDelay: 0, maxSize: 0 });
  });

  it('are whole seconds, rounded up', () => {
    const options = { groupGracePeriod: '1500ms', groupMaxDelay: '2m', groupMaxSize: 5000 } as const;
    expect(policy(options)).toEqual({ gracePeriod: 2, maxDelay: 120, maxSize: 5000 });
  });

  it('are overridden by queue and prefix of the group, later over earlier, option by option', () => {
    const options: ServerOptions = {
      groupMaxSize: 10,
      groupOverrides: [
        { queue: 'q', groupGracePeriod: '5s', groupMaxDelay: '9s' },
        { group: 'a:', groupGracePeriod: '7s' },
        { queue: 'q', group: 'a:b', groupMaxDelay: 0 },
      ],
    };
    expect(policy(options)).toEqual({ gracePeriod: 60, maxDelay: 0, maxSize: 10 });
    expect(policy(options, 'q')).toEqual({ gracePeriod: 5, maxDelay: 9, maxSize: 10 });
    expect(policy(options, 'p', 'a:x')).toEqual({ gracePeriod: 7, maxDelay: 0, maxSize: 10 });
    expect(policy(options, 'q', 'a:x')).toEqual({ gracePeriod: 7, maxDelay: 9, maxSize: 10 });
    expect(policy(options, 'q', 'a:bc')).toEqual({ gracePeriod: 7, maxDelay: 0, maxSize: 10 });
  });

  it.each<[ServerOptions, RegExp]>([
    [{ groupGracePeriod: '999ms' }, /^groupGracePeriod must be at least one second, not "999ms"/],
    [{ groupGracePeriod: 0 }, /^groupGracePeriod must be at least one second, not 0/],
    [{ groupMaxDelay: '1ms' }, /^groupMaxDelay must be at least one second, or 0 for no limit, not "1ms"/],
    [{ groupMaxSize: 5001 }, /^groupMaxSize must be a whole number from 0 to 5000, not 5001/],
    [{ groupMaxSize: 1.5 }, /^groupMaxSize must be a whole number/],
    [{ groupMaxDelays: 1 } as ServerOptions, /unknown server option "groupMaxDelays"; did you mean "groupMaxDelay"/],
    [{ groupOverrides: {} as never }, /^groupOverrides must be an array, not an object/],
    [{ groupOverrides: [{}, { gruop: 'x' } as never] }, /groupOverrides\[1\]: "gruop"; did you mean "group"/],
    [{ groupOverrides: [{ group: ' ' }] }, /^groupOverrides\[0\]\.group must contain/],
    [{ groupOverrides: [{ groupGracePeriod: '0s' }] }, /^groupOverrides\[0\]\.groupGracePeriod must be at least/],
  ])('are refused: %o', (options, message) => {
    expect(() => resolveServerOptions(options)).toThrow(message);
  });
});
