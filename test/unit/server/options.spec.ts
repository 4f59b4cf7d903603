import { describe, expect, it } from 'vitest';
import { InvalidOptionError } from '../../../lib/errors.js';
import { resolveServerOptions } from '../../../lib/server/options.js';

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

  it('takes durations as text and queues as names', () => {
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
