import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { decodeTaskMessage } from '../../lib/wire/codec.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request, uniqueId } from '../support/messages.js';
import { compiled } from '../support/programs.js';
import { clientsOf, connectionsTo, observe, ownServer } from './support.js';

vi.setConfig({ testTimeout: 600_000 });

/** How often the fleet is hit: more often by hand, ASYNQ_CHAOS_ROUNDS=20. */
const ROUNDS = Number(process.env['ASYNQ_CHAOS_ROUNDS'] ?? 1);
const QUEUE = 'grouped';
/** Two look for groups; when both are hit, the third has to. */
const SERVERS = 3;
const GRACE_SECONDS = 2;
const MAX_DELAY_SECONDS = 4;
/** Scores are whole seconds, and a group that has reached its size may wait a second more. */
const ROUNDING_SECONDS = 2;
/** How much later a group may be aggregated when both that look for groups have died: what the documentation says, and what a busy machine needs. */
const SUCCESSION_SECONDS = 12;
const SLACK_SECONDS = 8;
const keys = new Keyspace().queue(QUEUE);

/** A server of the fleet: see groups-process.ts. */
class Member {
  hasStarted = false;
  maintains = false;
  errors = '';
  readonly process: ChildProcess;

  constructor(program: string, port: number) {
    const times = { groupGracePeriod: `${GRACE_SECONDS}s`, groupMaxDelay: `${MAX_DELAY_SECONDS}s` };
    const args = [program, JSON.stringify({ host: '127.0.0.1', port }), QUEUE, JSON.stringify(times)];
    this.process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    createInterface({ input: this.process.stdout! }).on('line', (line) => {
      if (line === 'started') this.hasStarted = true;
      else this.maintains = line === 'maintains';
    });
    this.process.stderr!.on('data', (data: Buffer) => (this.errors += data.toString()));
    onTestFinished(() => void this.process.kill('SIGKILL'));
  }

  freeze(): void {
    this.process.kill('SIGSTOP');
    this.maintains = false;
  }

  /** It goes on as before, until it sees that others have its seat. */
  thaw(): void {
    this.maintains = true;
    this.process.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const ended = once(this.process, 'close');
    this.process.kill('SIGKILL');
    await ended;
  }
}

/** Knows outside of Redis which tasks have joined a group, and which aggregates each has become part of. */
class Oracle {
  /** When the group of each task is due at the latest; milliseconds. */
  private readonly joined = new Map<string, number>();
  private readonly again = new Set<string>();
  private readonly made = new Map<string, { at: number; ids: Set<string> }>();

  join(line: string, isBusy: boolean): void {
    const seconds = (isBusy ? MAX_DELAY_SECONDS : GRACE_SECONDS) + ROUNDING_SECONDS;
    this.joined.set(line, Date.now() + seconds * 1000);
  }

  /** An aggregate was found. */
  found(id: string, lines: readonly string[]): void {
    for (const line of lines) {
      const made = this.made.get(line);
      if (made) made.ids.add(id);
      else this.made.set(line, { at: Date.now(), ids: new Set([id]) });
    }
  }

  /** A task is enqueued again, as no reply has come. */
  resent(line: string): void {
    this.again.add(line);
  }

  get size(): number {
    return this.joined.size;
  }

  get missing(): string[] {
    return [...this.joined.keys()].filter((line) => !this.made.has(line));
  }

  get twice(): string[] {
    return [...this.made].flatMap(([line, { ids }]) => (ids.size > 1 && !this.again.has(line) ? [line] : []));
  }

  /** The longest time a task has waited for too long, in seconds. */
  get latest(): number {
    return Math.max(...Array.from(this.joined, ([line, due]) => ((this.made.get(line)?.at ?? Infinity) - due) / 1000));
  }
}

it('tasks of many groups are aggregated once, and in time, while servers are killed and frozen, and Redis restarts', async () => {
  // What Redis has written survives its process, synced or not.
  const redis = await ownServer({ args: ['--appendonly', 'yes', '--appendfsync', 'no'] });
  const observer = observe(redis.port);
  const address = { host: '127.0.0.1', port: redis.port };
  const oracle = new Oracle();
  const broker = new RedisBroker(connectionsTo(address));
  const program = await compiled(new URL('./groups-process.ts', import.meta.url));
  const members = Array.from({ length: SERVERS }, () => new Member(program, redis.port));
  const maintaining = (): Member[] => members.filter(({ maintains }) => maintains);
  const kill = (member: Member): Promise<void> => {
    members.splice(members.indexOf(member), 1);
    return member.kill();
  };
  const listeners = async (): Promise<number> =>
    (await clientsOf(observer)).filter(({ flags }) => flags.includes('B')).length;
  /** Until Redis reports changed groups to the servers that look for them. */
  const untilWatched = (least: number): Promise<void> =>
    vi.waitFor(async () => expect(await listeners()).toBeGreaterThanOrEqual(least), { timeout: 60_000 });

  let filling = true;
  let known = 0;
  /** Nobody runs the aggregates: all stay pending, the oldest last. */
  const find = async (): Promise<void> => {
    const ids = await observer.lrange(keys.pending, 0, -known - 1);
    for (const id of ids) {
      const { payload } = decodeTaskMessage((await observer.hgetBuffer(keys.task(id), 'msg'))!);
      oracle.found(id, String(payload).split('\n'));
    }
    known += ids.length;
  };
  /** A hundred new groups a second, however slow the machine is: each gets a task, and a second one half a second later. A few get some all the time. */
  const fill = async (): Promise<void> => {
    const began = Date.now();
    for (let turn = 0; filling; await pause(20)) {
      const groups: string[] = [];
      for (const end = (Date.now() - began) / 10; turn < end; turn++)
        groups.push(`user:${turn}`, `user:${Math.max(0, turn - 50)}`, `busy:${turn % 7}`);
      const requests = groups.map((groupKey) => request({ queue: QUEUE, groupKey, payload: Buffer.from(uniqueId()) }));
      await broker.producer.enqueue(QUEUE, requests).catch(async () => {
        for (const one of requests) oracle.resent(String(one.message.payload)); // it may have been stored, and made a part of an aggregate
        await vi.waitFor(() => broker.producer.enqueue(QUEUE, requests));
      });
      for (const { message } of requests) oracle.join(String(message.payload), message.groupKey.startsWith('busy'));
    }
  };
  await vi.waitFor(() => expect(members.filter(({ hasStarted }) => hasStarted)).toHaveLength(SERVERS), 60_000);
  await vi.waitFor(() => expect(maintaining()).toHaveLength(2));
  const filled = fill();
  let looking = true;
  const looked = (async () => {
    for (; looking; await pause(100)) await find().catch(() => undefined); // Redis may be away
  })();
  onTestFinished(async () => {
    filling = looking = false;
    await Promise.all([filled, looked]);
  });
  /** Sets whose server does not know of them, or was killed, go back after two minutes. */
  const expireSets = async (): Promise<void> => {
    for (const set of await observer.zrange(keys.aggregationSets, '0', '-1'))
      await observer.zadd(keys.aggregationSets, 'XX', 1, set);
    await vi.waitFor(() => broker.groups.reclaimStaleSets(QUEUE)); // the connection may be lost
  };

  await untilWatched(2);
  for (let round = 0; round < ROUNDS; round++) {
    await redis.restart();
    await expireSets(); // a reply to who claimed some may be lost
    await untilWatched(2);
    await vi.waitFor(() => expect(maintaining()).toHaveLength(2), { timeout: 60_000 });
    const [first, second] = maintaining() as [Member, Member];
    const isFrozen = round % 2 === 0;
    await kill(first);
    if (isFrozen) second.freeze();
    else await kill(second);
    await expireSets();
    await vi.waitFor(() => expect(maintaining()).toHaveLength(1), { timeout: 60_000 });
    await expireSets(); // calls of the dead may still have been on their way
    await untilWatched(isFrozen ? 2 : 1); // that of the frozen one, too
    if (isFrozen) second.thaw();
    while (round + 1 < ROUNDS && members.length < SERVERS) members.push(new Member(program, redis.port));
    await pause(round + 1 < ROUNDS ? 10_000 : 1_000);
  }
  filling = false;
  await filled;
  await vi.waitFor(() => expect(oracle.missing).toEqual([]), { timeout: 60_000 });
  expect(oracle.twice).toEqual([]);
  expect(members.map(({ errors }) => errors).join('')).toBe('');
  console.log(`groups: ${oracle.size} tasks, at most ${oracle.latest.toFixed(1)} s late`);
  expect(oracle.latest).toBeLessThan(SUCCESSION_SECONDS + SLACK_SECONDS);
});
