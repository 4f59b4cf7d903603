import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Cluster, Redis } from 'ioredis';
import type { QueueKeys } from '../../lib/wire/keys.js';
import { compiled } from '../support/programs.js';

/* What the tests have in common that kill processes while they work. */

/** How long processes are killed: longer by hand, ASYNQ_CHAOS_SECONDS=600. */
export const SECONDS = Number(process.env.ASYNQ_CHAOS_SECONDS ?? 6);
/** To start a process takes longer than all it does in a short run. */
export const PATIENCE = SECONDS > 60 ? 4 : 1;
export const TIMEOUT_MS = (SECONDS * 2 + 240) * 1000;

/** What processes print is kept in this file, for somebody who wants to know more. */
const log = process.env.ASYNQ_CHAOS_LOG ? createWriteStream(process.env.ASYNQ_CHAOS_LOG) : undefined;

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What is found last: nothing, or what has been the same for so many milliseconds. A busy machine may be slow, but it goes on. */
export async function last(look: () => Promise<string[]>, timeout: number): Promise<string[]> {
  let before = '';
  for (let end = 0; ; await sleep(500)) {
    const found = await look();
    const now = found.join('\n');
    if (now !== before) end = Date.now() + timeout;
    if (found.length === 0 || Date.now() > end) return found;
    before = now;
  }
}

/** Does something again and again until a time, at intervals of so many milliseconds on average. */
export async function repeatUntil(end: number, interval: number, what: () => Promise<void>): Promise<void> {
  for (;;) {
    const pause = interval * (0.5 + Math.random());
    if (Date.now() + pause > end) return;
    await sleep(pause);
    await what();
  }
}

/** Of tasks that take milliseconds: one that was claimed six seconds ago has lost its server. */
export const LEFT_OF_SHORT = 24;
/** Of tasks that may take longer: servers extend leases before so little of them is left. */
export const LEFT_OF_LONG = 10;

/** In one step: a lease that ends meanwhile, and is another server's now, is left alone. So is one that has ended long ago. */
const END_LEASES = `
local stale = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[2], ARGV[1], 'BYSCORE')
for i = 1, #stale do redis.call('ZADD', KEYS[1], ARGV[2], stale[i]) end
return stale`;

/**
 * Lets leases end that a dead server would keep for a minute. Its server may live all the same, if the machine is busy.
 *
 * @param left seconds; leases with less have lost their server
 * @returns the ids of the tasks
 */
export async function endStaleLeases(
  redis: Redis | Cluster,
  { lease }: QueueKeys,
  left = LEFT_OF_SHORT,
): Promise<string[]> {
  const now = Date.now() / 1000;
  return (await redis.eval(END_LEASES, 1, lease, now + left, Math.floor(now) - 40)) as string[];
}

export type Role = 'server' | 'client';

interface Member {
  readonly role: Role;
  readonly child: ChildProcess;
}

/** Processes of one program, which gets its settings as JSON and its role, prints `ready`, then what it does, and ends with its standard input. */
export abstract class Processes {
  /** Processes that ended though nobody wanted it. */
  readonly crashes: string[] = [];
  /** What was done to them, how often. */
  readonly deeds: Record<string, number> = {};
  private readonly members: Member[] = [];

  /** @param program its source */
  constructor(
    private readonly program: URL,
    private readonly settings: object,
  ) {}

  /** @param pid of the process that printed the line */
  protected abstract hear(line: string, pid: number): void;

  /** A process is ready, or was killed. */
  protected changed(_role: Role, _pid: number, _isUp: boolean): void {}

  async start(role: Role): Promise<void> {
    const program = await compiled(this.program);
    const child = spawn(process.execPath, [program, JSON.stringify(this.settings), role], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.members.push({ role, child });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code, signal) => {
        if (code !== 0 && signal !== 'SIGKILL') this.crashes.push(`a ${role} has ended with ${code ?? signal}`);
        reject(new Error(`a ${role} ended with ${code ?? signal} before it was ready`));
      });
      createInterface({ input: child.stdout }).on('line', (line) => {
        log?.write(`${child.pid} ${line}\n`);
        if (line !== 'ready') return this.hear(line, child.pid!);
        this.changed(role, child.pid!, true);
        resolve();
      });
    });
  }

  /** kill -9 of the one that has run for longest, and another in its place. */
  async replace(role: Role): Promise<void> {
    const { child } = this.take(role);
    child.kill('SIGKILL');
    this.changed(role, child.pid!, false);
    this.count(`killed ${role}`);
    await this.start(role);
  }

  /** Stops one as a machine that hangs, until the function that is returned is called. */
  freeze(role: Role): () => void {
    const member = this.take(role);
    member.child.kill('SIGSTOP');
    this.count(`frozen ${role}`);
    return () => {
      member.child.kill('SIGCONT');
      this.members.push(member);
    };
  }

  /** Tells those of a role to begin nothing new: a line on their standard input. */
  rest(role: Role): void {
    for (const one of this.members) if (one.role === role) one.child.stdin!.write('rest\n');
  }

  /** Lets those of a role end by themselves. */
  async stop(role: Role): Promise<void> {
    const ends = this.members
      .filter((one) => one.role === role)
      .map(({ child }) => {
        const closed = new Promise((resolve) => child.once('close', resolve));
        child.stdin!.end();
        return closed;
      });
    await Promise.all(ends);
  }

  async kill(): Promise<void> {
    for (const { child } of this.members) child.kill('SIGKILL');
  }

  /** Keeps what was done beside what processes print. */
  protected record(...words: readonly unknown[]): void {
    log?.write(`0 ${Date.now()} ${words.join(' ')}\n`);
  }

  count(deed: string): void {
    this.deeds[deed] = (this.deeds[deed] ?? 0) + 1;
  }

  private take(role: Role): Member {
    const at = this.members.findIndex((one) => one.role === role);
    return this.members.splice(at, 1)[0]!;
  }
}
