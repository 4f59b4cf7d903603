import assert from 'node:assert/strict';
import { decodeTaskMessage, encodeTaskMessage } from '../../lib/wire/codec.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { emptyMessage, type Candidate } from './candidate.js';
import { bufbuildFull, protobufjsFull } from './full-candidates.js';
import { bufbuildWire, protobufjsMinimal } from './wire-candidates.js';

const own: Candidate = { name: 'own (lib/wire)', encode: encodeTaskMessage, decode: decodeTaskMessage };
const CANDIDATES = [own, protobufjsMinimal, bufbuildWire, protobufjsFull, bufbuildFull];

const VARIETY = 1024;
const ROUNDS = 75;
const CALLS = 20_000;

/** The message of an enqueue with defaults: a JSON payload of 100 bytes, a UUID, 25 retries, 30 minutes. */
function plain(): TaskMessage {
  const payload = Buffer.from(JSON.stringify({ userId: 1e6 + Math.floor(Math.random() * 1e6), note: 'x'.repeat(72) }));
  assert.equal(payload.length, 100);
  return {
    ...emptyMessage(),
    type: 'email:welcome',
    payload,
    id: crypto.randomUUID(),
    queue: 'default',
    maxRetry: 25,
    timeout: 1800,
  };
}

/** The same message after a failure, unique, with trace headers. */
function full(): TaskMessage {
  return {
    ...plain(),
    retried: 2,
    errorMsg: 'connect ECONNREFUSED 127.0.0.1:5432 after 3 attempts',
    deadline: 1_700_003_600,
    uniqueKey: 'asynq:{default}:unique:email:welcome:bb6cb5c68df4652941caf652a366f2d8',
    lastFailedAt: 1_700_000_000,
    retention: 3600,
    headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tenant: 'acme' },
  };
}

/**
 * Nanoseconds of processor time per call, garbage collection included. Wall time would include other programs.
 * The sum prevents V8 from removing the work.
 */
function time<T>(inputs: readonly T[], call: (input: T) => number): number {
  let sum = 0;
  const start = process.cpuUsage();
  for (let i = 0; i < CALLS; i++) sum += call(inputs[i % VARIETY]!);
  const { user, system } = process.cpuUsage(start);
  assert.ok(sum > 0);
  return ((user + system) * 1000) / CALLS;
}

/** The median and the best round. On a busy machine the best rounds are more reliable. */
function figures(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${Math.round(sorted[sorted.length >> 1]!)} (best ${Math.round(sorted[0]!)})`;
}

function measure(title: string, make: () => TaskMessage): void {
  const messages = Array.from({ length: VARIETY }, make);
  const stored = messages.map((message) => Buffer.from(encodeTaskMessage(message)));
  const results = CANDIDATES.map((candidate) => ({ candidate, encode: [] as number[], decode: [] as number[] }));
  for (const { candidate } of results) check(candidate, messages[0]!);
  // The rounds are interleaved, so that a busy moment affects all candidates. The first rounds warm up.
  for (let round = -10; round < ROUNDS; round++) {
    for (const { candidate, encode, decode } of results) {
      const encoding = time(messages, (message) => candidate.encode(message).length);
      const decoding = time(stored, (bytes) => candidate.decode(bytes).id.length);
      if (round >= 0) {
        encode.push(encoding);
        decode.push(decoding);
      }
    }
  }
  console.log(
    `\n${title}, ${stored[0]!.length} bytes: nanoseconds per call, median of ${ROUNDS} rounds of ${CALLS} calls`,
  );
  console.table(
    results.map(({ candidate, encode, decode }) => ({
      candidate: candidate.name,
      encode: figures(encode),
      decode: figures(decode),
    })),
  );
}

/** Throws if a candidate does not return the same message. */
function check(candidate: Candidate, message: TaskMessage): void {
  const bytes = Buffer.from(candidate.encode(message));
  const plainly = (value: TaskMessage) => JSON.stringify({ ...value, headers: Object.entries(value.headers ?? {}) });
  assert.equal(plainly(decodeTaskMessage(bytes)), plainly(message), `${candidate.name}: encode`);
  assert.equal(plainly(candidate.decode(encodeTaskMessage(message))), plainly(message), `${candidate.name}: decode`);
}

measure('Task message as enqueued', plain);
measure('Task message with all that can be in it', full);
