import type { Broker } from '../../broker/broker.js';
import { watchRejection } from '../../async.js';
import type { AsynqEvents } from '../../events/events.js';

/** Called after each ping: `undefined` or the error (asynq's HealthCheckFunc). */
export type HealthCheckHook = (error: Error | undefined) => void;

export interface HealthCheckOptions {
  readonly broker: Pick<Broker, 'monitoring'>;
  readonly events: AsynqEvents;
  readonly hook: HealthCheckHook;
  /** Milliseconds between two checks. */
  readonly interval: number;
}

/** Pings Redis and calls the user's hook. */
export class HealthCheck {
  constructor(private readonly options: HealthCheckOptions) {}

  async runOnce(): Promise<number> {
    const { broker, events, hook, interval } = this.options;
    const failure = await broker.monitoring.ping().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
    const report = (error: unknown): void => events.emit('hookFailed', { hook: 'healthCheck', error });
    try {
      watchRejection(hook(failure), report);
    } catch (error) {
      report(error);
    }
    return interval;
  }
}
