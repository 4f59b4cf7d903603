import { expect, it, onTestFinished } from 'vitest';
import type { AsynqBatch } from '../../lib/batches/batch.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { describeWithGo } from '../support/go.js';
import type { PeerStep } from '../support/peer.js';
import { base64, useInterop } from './fixture.js';

const OK: PeerStep[] = [{ do: 'ok' }];
const CALLBACKS = { success: OK, complete: OK, death: OK };
const MEMBERS = 1_100;

describeWithGo('a batch whose members and callbacks a Go server runs', () => {
  const interop = useInterop();

  /** Go serves both the queue of the members and that of the callbacks; one server of ours keeps links, and runs nothing. */
  async function arrange(behaviours: Record<string, PeerStep[]>) {
    const { go, ours, redis } = interop;
    const [home, rows, calls] = [interop.queue(), interop.queue(), interop.queue()];
    await interop.serve(ours, interop.queue(), { behaviours: { none: OK } });
    const server = await interop.serve(go, [rows, calls], { behaviours: { ...behaviours, ...CALLBACKS } });
    const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
    const client = new AsynqClient(broker);
    onTestFinished(() => client.close().then(() => broker.close()));
    const callback = (type: string): [string, string, { queue: string }] => [
      type,
      `it is the ${type}`,
      { queue: calls },
    ];
    const batch = await client.openBatch({
      name: 'by Go',
      queue: home,
      onSuccess: callback('success'),
      onComplete: callback('complete'),
      onDeath: callback('death'),
    });
    return { batch, rows, calls, server };
  }

  const counts = async (batch: AsynqBatch): Promise<string> => {
    const { state, total, pending, succeeded, failed } = await batch.progress();
    return [state, total, pending, succeeded, failed].join(' ');
  };
  /** The callbacks that Go has begun, with their payloads. */
  const called = ({ id }: AsynqBatch): (string | null)[] =>
    interop.go
      .seen('start')
      .filter((event) => event.id.startsWith(`${id}~`) && event.type in CALLBACKS)
      .map(({ payload }) => payload)
      .sort();
  const payloads = (...types: string[]): string[] => types.map((type) => base64(`"it is the ${type}"`)).sort();

  it('succeeds, also when some are retried', async () => {
    const flaky: PeerStep[] = [{ do: 'fail', error: 'busy' }, { do: 'ok' }];
    const { batch, rows } = await arrange({ row: OK, flaky });
    const options = { queue: rows };
    await batch.add('row', Array<undefined>(MEMBERS).fill(undefined), options);
    await batch.add('flaky', [undefined, undefined], options);
    await batch.close();
    await interop.until(async () => expect(await counts(batch)).toBe(`succeeded ${MEMBERS + 2} 0 ${MEMBERS + 2} 0`));
    await interop.until(async () => expect(called(batch)).toEqual(payloads('success', 'complete')));
    await interop.until(async () => {
      const left = await interop.raw.keys(`asynq:{${rows}}:t:*`);
      expect(left).toEqual([]); // kept for us only, until we have counted them
    });
  });

  it('completes when one has died, and succeeds when Go runs that again', async () => {
    const { go } = interop;
    const { batch, rows, calls, server } = await arrange({
      row: OK,
      dead: [{ do: 'skipRetry', error: 'no such row' }],
    });
    const options = { queue: rows };
    await batch.add('row', Array<undefined>(20).fill(undefined), options);
    await batch.add('dead', [undefined], options);
    await batch.close();
    await interop.until(async () => expect(await counts(batch)).toBe('completed 21 0 20 1'));
    await interop.until(async () => expect(called(batch)).toEqual(payloads('complete', 'death')));
    await server.stop();
    await interop.serve(go, [rows, calls], { behaviours: { dead: OK, ...CALLBACKS } });
    const [dead] = await go.list(rows, 'archived');
    await go.runTask(rows, dead!.id);
    await interop.until(async () => expect(await counts(batch)).toBe('succeeded 21 0 21 0'));
    await interop.until(async () => expect(called(batch)).toEqual(payloads('complete', 'death', 'success')));
  });
});
