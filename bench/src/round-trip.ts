import { spawn } from 'node:child_process';
import { Redis } from 'ioredis';

/** @returns as given, a duration of Go; `undefined` without one */
export function readRoundTrip(text: string | undefined): string | undefined {
  if (text === undefined || /^\d+(\.\d+)?(us|ms)$/.test(text)) return text;
  console.error(`--rtt is "${text}"; give a time like 1ms or 200us`);
  return process.exit(1);
}

interface Sized {
  readonly kind: string;
  readonly count: number;
  readonly atOnce: number;
}

/** How many tasks are enough where each waits for a round trip; no row where Redis is not what systems wait for. */
export function slower<S extends Sized>(scenario: S): S[] {
  const { kind, count, atOnce } = scenario;
  if (kind === 'latency') return [scenario];
  if (kind !== 'enqueue' && kind !== 'process') return [];
  const share = atOnce === 1 ? 25 : atOnce === 10 ? 10 : 5;
  return [{ ...scenario, count: Math.max(20, Math.floor(count / share)) }];
}

/** Puts a proxy of bench/go before Redis, and measures what it really takes. */
export async function startProxy(go: string | undefined, port: number, target: number, roundTrip: string) {
  if (!go) {
    console.error('--rtt needs the proxy of bench/go, which did not build; install Go, or leave --rtt out');
    return process.exit(1);
  }
  const child = spawn(go, ['proxy', `${port}`, `${target}`, roundTrip], { stdio: ['ignore', 'ignore', 'inherit'] });
  const redis = new Redis(port, { maxRetriesPerRequest: 100, retryStrategy: () => 50 });
  redis.on('error', () => {});
  await redis.ping();
  const times: number[] = [];
  for (let n = 0; n < 100; n++) {
    const sent = performance.now();
    await redis.ping();
    times.push(performance.now() - sent);
  }
  redis.disconnect();
  const milliseconds = times.sort((a, b) => a - b)[50]!;
  return { port, milliseconds, stop: () => void child.kill() };
}
