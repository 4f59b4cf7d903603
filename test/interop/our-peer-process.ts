/*
 * Our side of the interop tests as a program: it understands the requests of go/main.go and tells the same events.
 * Arguments: how far its clock is ahead, host and port of Redis. Everything that goes wrong in the background is written to stderr, which tests find empty.
 */
import { createInterface } from 'node:readline';

import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Preparer } from '../../lib/enqueue/preparer.js';
import { SystemClock } from '../../lib/clock.js';
import { DuplicateTaskError, TaskIdConflictError } from '../../lib/errors.js';
import type { TaskAggregatorEntry } from '../../lib/server/groups/aggregators.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import type { PeerEnqueue, PeerEvent, PeerServe } from '../support/peer.js';
import { attempt, Gates, type SentStep } from './our-handler.js';

const [ahead, host, port] = process.argv.slice(-3);

class PeerClock extends SystemClock {
  override now(): number {
    return super.now() + Number(ahead);
  }
}

const clock = new PeerClock();
const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }), { clock });
const client = new AsynqClient(broker);
const servers = new Map<string, Server>();
const gates = new Gates();

const write = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const complain = (what: string, error: unknown): void => console.error(`${what}:`, error);
const emit = (event: PeerEvent['event'], fields: Partial<PeerEvent>): void => write({ event, ...fields });

/** What no server should have to tell while Redis is there and answers. */
const TROUBLE = [
  'aggregationFailed',
  'loopFailed',
  'queueUnreachable',
  'wakeUnavailable',
  'hookFailed',
  'listenerFailed',
] as const;

/** Requests as they arrive: bytes in base64. */
type SentEnqueue = Omit<PeerEnqueue, 'payload'> & { payload?: string };
type SentServe = Omit<PeerServe, 'behaviours'> & { behaviours: Record<string, SentStep[]> };

const date = (milliseconds: number | undefined): Date | undefined =>
  milliseconds === undefined ? undefined : new Date(milliseconds);

const enqueue = async ({ type, payload, deadline, processAt, ...options }: SentEnqueue): Promise<object> => {
  const bytes = payload === undefined ? undefined : Buffer.from(payload, 'base64');
  const info = await client.enqueue(type, bytes, { ...options, deadline: date(deadline), processAt: date(processAt) });
  return { id: info.id, state: info.state, nextProcessAt: info.nextProcessAt?.getTime() ?? null };
};

/** What Go's client cannot: many tasks in few round trips. */
const enqueueMany = async ({
  count,
  type,
  queue,
}: {
  count: number;
  type: string;
  queue: string;
}): Promise<string[]> => {
  const results = await client.enqueueMany(type, Array<undefined>(count).fill(undefined), { queue });
  return results.map((result) => {
    if (!result.ok) throw result.error;
    return result.info.id;
  });
};

/** Makes one task of the tasks of a group, with their payloads line by line. */
const joinPayloads = (type: string): TaskAggregatorEntry => {
  const preparer = new Preparer(broker.keyPrefix);
  return {
    pattern: '',
    read: ({ id, type, payload, headers = {} }) => ({ id, type, payload, headers }),
    aggregate: async (queue, _, tasks) => {
      const lines = tasks.map(({ payload }) => (payload as Buffer).toString()).join('\n');
      return preparer.prepare(preparer.kindOf(type, { queue }), Buffer.from(lines), clock.now());
    },
  };
};

const serve = async (sent: SentServe): Promise<void> => {
  const { name = '', retryDelay = 0, behaviours, aggregateTo, shutdownTimeout, ...options } = sent;
  const handlers = Object.entries(behaviours).map(([pattern, steps]) => ({
    pattern,
    handle: (task: TaskContext) => attempt(task, name, steps, gates, emit),
  }));
  const onError = (error: unknown, { id }: TaskContext): void =>
    emit('error', { server: name, id, error: error instanceof Error ? error.message : String(error) });
  const aggregators = aggregateTo === undefined ? [] : [joinPayloads(aggregateTo)];
  const server = new Server({
    broker,
    handlers,
    aggregators,
    options: {
      ...options,
      retryDelay: () => retryDelay,
      onError,
      ...(shutdownTimeout !== undefined && { shutdownTimeout: `${shutdownTimeout}ms` }), // a small number is taken for seconds
    },
  });
  for (const event of TROUBLE) server.events.on(event, (details) => complain(event, details));
  servers.set(name, server);
  await server.start();
};

const named = (name: string): Server => {
  const server = servers.get(name);
  if (!server) throw new Error(`no server is called "${name}"`);
  return server;
};

type Operation = (args: never) => unknown;

const operations: Record<string, Operation> = {
  enqueue,
  enqueueMany,
  serve,
  release: ({ id }: { id: string }) => gates.release(id),
  stop: ({ name }: { name: string }) => named(name).stop(),
  shutdown: ({ name }: { name: string }) => named(name).shutdown(),
  pause: ({ queue }: { queue: string }) => broker.administration.pauseQueue(queue),
  unpause: ({ queue }: { queue: string }) => broker.administration.resumeQueue(queue),
  cancel: ({ id }: { id: string }) => broker.cancellation.publishCancellation(id),
};

const kindOf = (error: unknown): string => {
  if (error instanceof DuplicateTaskError) return 'duplicate';
  return error instanceof TaskIdConflictError ? 'conflict' : 'other';
};

const answer = async (id: number, op: string, args: unknown): Promise<void> => {
  try {
    write({ id, ok: (await operations[op]!(args as never)) ?? null });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    write({ id, error: { message, kind: kindOf(error) } });
  }
};

process.on('unhandledRejection', (error) => complain('unhandled rejection', error));
process.on('uncaughtException', (error) => complain('uncaught exception', error));

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const { id, op, args } = JSON.parse(line) as { id: number; op: string; args: unknown };
  void answer(id, op, args);
});
// Like the Go program, it does not outlive its driver.
lines.on('close', () => process.exit(0));
emit('ready', {});
