import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startGoPeer, type GoPeer } from '../support/go-peer.js';
import type { PeerStep } from '../support/peer.js';
import type { LinkedSettings } from './linked-process.js';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** What a Go server does with the types of linked-process.ts. */
const GO_BEHAVIOURS: Record<string, PeerStep[]> = {
  pay: [{ do: 'ok' }],
  ship: [{ do: 'ok' }],
  close: [{ do: 'fail' }, { do: 'ok' }],
  plain: [{ do: 'ok', result: Buffer.from('"by Go"') }],
  doomed: [{ do: 'skipRetry', error: 'bad luck' }],
};

export type Role = 'server' | 'client';
export interface Ref {
  readonly queue: string;
  readonly id: string;
}

interface Member {
  readonly role: Role;
  readonly child: ChildProcess;
}

/** Processes that make and run linked tasks, and what they have said. Its calls may overlap. */
export class Fleet {
  readonly accepted: Record<'task' | 'run' | 'batch', Ref[]> = { task: [], run: [], batch: [] };
  /** By batch: how many members its client was told it has. */
  readonly added = new Map<string, number>();
  /** By id of a task and number of the attempt: how often it has ended well. */
  readonly ran = new Map<string, Map<string, number>>();
  /** Ids of tasks that a handler has given up for good. */
  readonly givenUp = new Set<string>();
  /** What clients were refused, by code: the messages. */
  readonly refused: Record<string, string[]> = {};
  /** Processes that ended though nobody wanted it. */
  readonly crashes: string[] = [];
  /** What was done to it, how often. */
  readonly deeds: Record<string, number> = {};
  private readonly members: Member[] = [];
  private readonly peers: GoPeer[] = [];

  constructor(private readonly settings: LinkedSettings) {}

  start(role: Role): Promise<void> {
    const program = [path('../support/run-ts.mjs'), path('./linked-process.ts'), JSON.stringify(this.settings), role];
    const child = spawn(process.execPath, program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.members.push({ role, child });
    return new Promise((resolve, reject) => {
      child.once('exit', (code, signal) => {
        if (code !== 0 && signal !== 'SIGKILL') this.crashes.push(`a ${role} has ended with ${code ?? signal}`);
        reject(new Error(`a ${role} ended with ${code ?? signal} before it was ready`));
      });
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'ready') resolve();
        else this.hear(line);
      });
    });
  }

  /** kill -9 of the one that has run for longest, and another in its place. */
  async replace(role: Role): Promise<void> {
    this.take(role).child.kill('SIGKILL');
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

  /** A Go server that works one queue, in place of the last one, which is killed. */
  async startGo(redis: { host: string; port: number }, queue: string): Promise<void> {
    const before = this.peers.at(-1);
    if (before) this.count('killed Go server');
    await before?.kill();
    const peer = await startGoPeer(redis);
    this.peers.push(peer);
    await peer.serve({ queues: { [queue]: 1 }, behaviours: GO_BEHAVIOURS });
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
    await Promise.all(this.peers.map((peer) => peer.kill()));
  }

  /** Takes in what Go servers have said, who say after an attempt how it has ended, and before it which it is. */
  listenToGo(): void {
    for (const { events } of this.peers) {
      const attempts = new Map<string, number>();
      for (const { event, id, retried, error } of events.splice(0)) {
        if (event === 'start') attempts.set(id, retried);
        else if (event === 'end' && error === undefined) this.hear(`ran ${id} ${attempts.get(id)}`);
        else if (event === 'end' && error === 'bad luck') this.hear(`gaveup ${id}`);
      }
    }
  }

  count(deed: string): void {
    this.deeds[deed] = (this.deeds[deed] ?? 0) + 1;
  }

  private take(role: Role): Member {
    const at = this.members.findIndex((one) => one.role === role);
    return this.members.splice(at, 1)[0]!;
  }

  private hear(line: string): void {
    const [word, first, second] = line.split(' ') as [string, string, string];
    if (word === 'ran') addTo(this.attemptsOf(first), second, 1);
    else if (word === 'gaveup') this.givenUp.add(first);
    else if (word === 'added') addTo(this.added, first, Number(second));
    else if (word === 'refused') (this.refused[first] ??= []).push(line);
    else this.accepted[word as 'task'].push({ queue: first, id: second });
  }

  private attemptsOf(id: string): Map<string, number> {
    let attempts = this.ran.get(id);
    if (!attempts) this.ran.set(id, (attempts = new Map()));
    return attempts;
  }
}

const addTo = (counts: Map<string, number>, key: string, by: number): void =>
  void counts.set(key, (counts.get(key) ?? 0) + by);
