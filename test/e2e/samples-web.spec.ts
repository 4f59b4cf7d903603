import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { QueueKeys } from '../../lib/wire/keys.js';
import { type DatabaseServer, startPostgres } from '../support/database-server.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { Programs, repository, type Program } from './program.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });

const QUEUE = 'signup-mail';
const keys = new QueueKeys('asynq', QUEUE);
/** The file of SQLite stays from run to run. */
const ann = () => ({ email: `ann-${randomUUID()}@example.com`, name: 'Ann' });

interface Status {
  readonly state: string;
  readonly result?: string;
  readonly error?: string;
}

describe.each(['SQLite', 'PostgreSQL'])('the web sample on %s', (database) => {
  const programs = new Programs();
  let server: RedisProcess;
  let postgres: DatabaseServer | undefined;
  let redis: Redis;
  let broker: RedisBroker;
  /** Another service on the same Redis. */
  let client: AsynqClient;
  let web: Program;
  let worker: Program;
  let url: string;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port);
    redis.on('error', () => undefined); // one test stops Redis
    broker = new RedisBroker(new RedisConnections({ host: server.host, port: server.port }));
    client = new AsynqClient(broker);
    if (database === 'PostgreSQL') postgres = await startPostgres();
    web = programs.npm(['run', 'sample:web'], {
      REDIS_URL: server.url,
      PORT: '0',
      ...(postgres && { DATABASE_URL: `postgres://postgres@127.0.0.1:${postgres.port}/postgres` }),
    });
    worker = await startWorker();
    [, url] = (await web.until(/^listening on (\S+)$/m)) as unknown as [string, string];
  });
  afterAll(async () => {
    await programs.destroy();
    await client?.close();
    await broker?.close();
    redis?.disconnect();
    await server?.stop();
    await postgres?.stop();
  });

  /** Without npm, which would keep SIGTERM to itself. */
  const startWorker = async (): Promise<Program> => {
    const program = programs.start(process.execPath, [`${repository}/sample/start.mjs`, '02-web/worker'], {
      REDIS_URL: server.url,
    });
    await program.until(/Server started: concurrency 20, queues signup-mail=1/);
    return program;
  };

  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/signups`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const statusOf = async (id: unknown): Promise<Status> => {
    const response = await fetch(`${url}/signups/${id}`);
    expect(response.status).toBe(200);
    return (await response.json()) as Status;
  };
  const untilState = (id: unknown, state: string): Promise<Status> =>
    vi.waitFor(
      async () => {
        const status = await statusOf(id);
        expect(status.state).toBe(state);
        return status;
      },
      { timeout: 30_000, interval: 20 },
    );

  it('answers 202 with the id of a task, and the worker does it', async () => {
    const person = ann();
    const { status, body } = await post({ ...person, admin: true });
    expect(status).toBe(202);
    expect(body).toEqual({ taskId: expect.stringMatching(/^[\da-f-]{36}$/) });
    expect(await untilState(body['taskId'], 'completed')).toEqual({
      state: 'completed',
      result: `sent to ${person.email}`,
    });
    await worker.until(new RegExp(`\\[Mailer\\] to ${person.email}: Welcome, Ann!`));
    await worker.until(new RegExp(`\\[Timing\\] email:welcome ${body['taskId']} took [\\d.]+ ms`));
    const stored = await broker.inspection.getTask(QUEUE, String(body['taskId']));
    expect(JSON.parse(String(stored!.message.payload))).toEqual(person); // what the DTO does not know is not passed on
  });

  it('answers 400 to a body that does not fit, and enqueues nothing', async () => {
    const before = await redis.keys(`${keys.taskPrefix}*`);
    const { status, body } = await post({ email: 'nobody', name: '' });
    expect(status).toBe(400);
    expect(body['message']).toEqual(['email must be an email', 'name must be longer than or equal to 1 characters']);
    expect(await redis.keys(`${keys.taskPrefix}*`)).toHaveLength(before.length);
  });

  it('returns 409 to who has signed up already, also at the same moment, and mails once', async () => {
    const person = ann();
    const replies = await Promise.all(Array.from({ length: 5 }, () => post(person)));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([202, 409, 409, 409, 409]);
    const stored = replies.find(({ status }) => status === 202)!.body['taskId'];
    await untilState(stored, 'completed');
    const mails = worker.stdout.split('\n').filter((line) => line.includes(person.email));
    expect(mails).toHaveLength(1);
  });

  it('keeps a sign-up and its mail while Redis is away', async () => {
    await server.kill();
    const { status, body } = await post(ann());
    expect(status).toBe(202);
    await server.start();
    await untilState(body['taskId'], 'completed');
  });

  if (database === 'PostgreSQL') {
    it('lives on when PostgreSQL dies in the middle of sign-ups', async () => {
      const other = new pg.Client({ host: '127.0.0.1', port: postgres!.port, user: 'postgres', database: 'postgres' });
      other.on('error', () => undefined);
      await other.connect();
      await other.query('BEGIN');
      await other.query('LOCK TABLE signups');
      const people = [ann(), ann(), ann()];
      const lost = people.map((person) => post(person));
      await vi.waitFor(async () => {
        const { rows } = await other.query<{ count: string }>('SELECT COUNT(*) FROM pg_locks WHERE NOT granted');
        expect(rows[0]!.count).toBe('3');
      });
      await postgres!.kill();
      expect((await Promise.all(lost)).map(({ status }) => status)).toEqual([500, 500, 500]);
      await postgres!.start();
      const replies = await Promise.all(people.map((person) => post(person)));
      expect(replies.map(({ status }) => status)).toEqual([202, 202, 202]);
      for (const { body } of replies) await untilState(body['taskId'], 'completed');
      for (const { email } of people) expect(worker.stdout.split(`to ${email}:`)).toHaveLength(2);
    });
  }

  it('answers 404 for a task there is not', async () => {
    const response = await fetch(`${url}/signups/nowhere`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ message: 'no such signup: nowhere' });
  });

  it('gives the mail of a blocked tenant up', async () => {
    const { body } = await post(ann(), { 'x-tenant': 'blocked' });
    expect(await untilState(body['taskId'], 'archived')).toEqual({
      state: 'archived',
      error: 'tenant "blocked" is blocked',
    });
  });

  it('archives an invalid payload of another service with what is wrong with it', async () => {
    const { id } = await client.enqueue('email:welcome', { email: 'nobody', name: 'Ann' }, { queue: QUEUE });
    const { error } = await untilState(id, 'archived');
    expect(error).toContain('invalid payload of task "email:welcome": email must be an email');
  });

  it('mails everybody once when the worker is stopped in between and another one starts', async () => {
    const people = Array.from({ length: 500 }, (_, n) => ({ email: `p${n}@example.com`, name: `P${n}` }));
    const before = await redis.zcard(keys.completed);
    await client.enqueueMany('email:welcome', people, { queue: QUEUE, retention: '1h' });
    await worker.until(/to p0@example/);
    worker.terminate();
    expect(await worker.ended).toEqual({ code: null, signal: 'SIGTERM' });
    expect(worker.stdout).toMatch(/Server closed/);
    const second = await startWorker();
    await vi.waitFor(async () => expect(await redis.zcard(keys.completed)).toBe(before + people.length), {
      timeout: 30_000,
    });
    second.terminate();
    await second.ended; // with all its output
    const mailed = [worker, second].flatMap(({ stdout }) =>
      [...stdout.matchAll(/to (p\d+@example\.com): Welcome/g)].map(([, to]) => to!),
    );
    expect(mailed.toSorted()).toEqual(people.map(({ email }) => email).toSorted());
  });

  it('stops with Ctrl-C', async () => {
    web.interrupt();
    await web.ended;
    await expect(fetch(`${url}/signups/nowhere`)).rejects.toThrow();
  });
});
