import { startGoPeer, type GoPeer } from '../support/go-peer.js';
import type { PeerStep } from '../support/peer.js';
import { Processes } from './chaos.js';
import type { LinkedSettings } from './linked-process.js';

/** What a Go server does with the types of linked-process.ts. */
const GO_BEHAVIOURS: Record<string, PeerStep[]> = {
  pay: [{ do: 'ok' }],
  ship: [{ do: 'ok' }],
  close: [{ do: 'fail' }, { do: 'ok' }],
  plain: [{ do: 'ok', result: Buffer.from('"by Go"') }],
  doomed: [{ do: 'skipRetry', error: 'bad luck' }],
};

export interface Ref {
  readonly queue: string;
  readonly id: string;
}

/** Processes that make and run linked tasks, and what they have said. Its calls may overlap. */
export class Fleet extends Processes {
  readonly accepted: Record<'task' | 'run' | 'batch', Ref[]> = { task: [], run: [], batch: [] };
  /** By batch: how many members its client was told it has. */
  readonly added = new Map<string, number>();
  /** By id of a task and number of the attempt: how often it has ended well. */
  readonly ran = new Map<string, Map<string, number>>();
  /** Ids of tasks that a handler has given up for good. */
  readonly givenUp = new Set<string>();
  /** What clients were refused, by code: the messages. */
  readonly refused: Record<string, string[]> = {};
  private readonly peers: GoPeer[] = [];

  constructor(settings: LinkedSettings) {
    super(new URL('./linked-process.ts', import.meta.url), settings);
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

  override async kill(): Promise<void> {
    await Promise.all([super.kill(), ...this.peers.map((peer) => peer.kill())]);
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

  protected hear(line: string): void {
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
