import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/*
 * A process with a client and any number of servers, driven over stdin and stdout: Go asynq
 * (test/interop/go) or ours (test/interop/our-peer-process.ts). Both understand the same requests and tell
 * the same events, so that one test can put either on either side of Redis. test/interop/go/main.go
 * describes the lines; bytes are base64 there and in everything received here.
 */

/**
 * Options of one enqueue; durations and times (since the epoch) in milliseconds. No payload is Go's
 * nil.
 */
export interface PeerEnqueue {
  type: string;
  payload?: Buffer;
  headers?: Record<string, string>;
  queue?: string;
  maxRetry?: number;
  timeout?: number;
  deadline?: number;
  unique?: number;
  processIn?: number;
  processAt?: number;
  taskId?: string;
  retention?: number;
  group?: string;
}

/** What one attempt of a task does. */
export interface PeerStep {
  /**
   * `hold` ends well once `release` was called for the task; `hang` ends, with the reason, when it
   * is cancelled or its time is up.
   */
  do: 'ok' | 'hold' | 'hang' | 'fail' | 'skipRetry' | 'revoke' | 'panic' | 'forward' | 'block';
  error?: string;
  result?: Buffer;
  /** Milliseconds of work before it does. */
  ms?: number;
  /**
   * Of `forward`, which Go alone knows: the queue of the task it enqueues, with the type and the
   * payload of its own and in its trace.
   */
  to?: string;
}

/** Intervals and delays in milliseconds. */
export interface PeerServe {
  name?: string;
  queues?: Record<string, number>;
  concurrency?: number;
  strictPriority?: boolean;
  taskCheckInterval?: number;
  delayedTaskCheckInterval?: number;
  retryDelay?: number;
  shutdownTimeout?: number;
  /**
   * Type of the tasks that groups become, with the payloads line by line; without it nothing is
   * aggregated here.
   */
  aggregateTo?: string;
  groupGracePeriod?: number;
  groupMaxDelay?: number;
  groupMaxSize?: number;
  /** By pattern of the task type: the attempt after n failures does step n, or the last one. */
  behaviours: Record<string, PeerStep[]>;
}

export interface PeerServer {
  /** Stops taking tasks. */
  stop(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * An attempt begins (`start`) or its handler returns (`end`); `error`: the server takes the failure
 * path.
 */
export interface PeerEvent {
  event: 'ready' | 'start' | 'end' | 'error';
  server: string;
  id: string;
  type: string;
  queue: string;
  payload: string | null;
  headers: Record<string, string> | null;
  retried: number;
  maxRetry: number;
  deadline: number | null;
  at: number;
  error?: string;
}

/** An error that the peer returned. */
export class PeerError extends Error {
  constructor(
    message: string,
    /**
     * `duplicate`, `conflict`, `queue not found`, `task not found`, `queue not empty` or `other`.
     */
    readonly kind: string,
  ) {
    super(message);
  }
}

interface Waiter {
  matches: (event: PeerEvent) => boolean;
  resolve: (event: PeerEvent) => void;
  reject: (error: Error) => void;
}

interface Answer {
  id: number;
  ok?: unknown;
  error?: { message: string; kind: string };
}

export class Peer {
  readonly events: PeerEvent[] = [];
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly waiters = new Set<Waiter>();
  private readonly calls = new Map<number, (answer: Answer) => void>();
  private lastCall = 0;
  private lastServer = 0;
  private ended: Error | undefined;
  private complaints = '';

  constructor(program: string, args: readonly string[]) {
    this.child = spawn(program, args);
    createInterface({ input: this.child.stdout }).on('line', (line) => this.onLine(line));
    this.child.stderr.on('data', (chunk: Buffer) => (this.complaints += chunk.toString()));
    this.child.stdin.on('error', () => undefined);
    this.child.once('error', (error) => this.onEnd(`could not be started: ${error.message}`));
    this.child.once('close', (code, signal) => this.onEnd(`has ended (${signal ?? code})`));
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Everything the process wrote to stderr; a test expects nothing. */
  get stderr(): string {
    return this.complaints;
  }

  call<T = void>(op: string, args: object = {}): Promise<T> {
    if (this.ended) return Promise.reject(this.ended);
    const id = ++this.lastCall;
    return new Promise<T>((resolve, reject) => {
      this.calls.set(id, ({ ok, error }) =>
        error ? reject(new PeerError(error.message, error.kind)) : resolve(ok as T),
      );
      this.child.stdin.write(`${JSON.stringify({ id, op, args: encodeBytes(args) })}\n`);
    });
  }

  enqueue(task: PeerEnqueue): Promise<{ id: string; state: string; nextProcessAt: number | null }> {
    return this.call('enqueue', task);
  }

  /**
   * Starts a server; unless told otherwise it polls every 20 ms, forwards every 100 ms, retries at
   * once and ends soon.
   */
  async serve({ name = `server ${++this.lastServer}`, ...options }: PeerServe): Promise<PeerServer> {
    const intervals = { taskCheckInterval: 20, delayedTaskCheckInterval: 100, retryDelay: 0, shutdownTimeout: 200 };
    await this.call('serve', { concurrency: 10, ...intervals, ...options, name });
    return { stop: () => this.call('stop', { name }), shutdown: () => this.call('shutdown', { name }) };
  }

  /** Lets a `hold` attempt of the task succeed, now or when it starts. */
  release(id: string): Promise<void> {
    return this.call('release', { id });
  }

  pause(queue: string): Promise<void> {
    return this.call('pause', { queue });
  }

  unpause(queue: string): Promise<void> {
    return this.call('unpause', { queue });
  }

  /** Publishes a cancellation. */
  cancel(id: string): Promise<void> {
    return this.call('cancel', { id });
  }

  seen(event: PeerEvent['event'], fields: Partial<PeerEvent> = {}): PeerEvent[] {
    return this.events.filter(matcher(event, fields));
  }

  /** The first matching event, past or future. Rejects when the process ends first. */
  event(event: PeerEvent['event'], fields: Partial<PeerEvent> = {}): Promise<PeerEvent> {
    const matches = matcher(event, fields);
    const past = this.events.find(matches);
    if (past) return Promise.resolve(past);
    if (this.ended) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => this.waiters.add({ matches, resolve, reject }));
  }

  /** Ends the process like a crash: kill -9. */
  async kill(): Promise<void> {
    if (this.ended) return;
    const closed = once(this.child, 'close');
    this.child.kill('SIGKILL');
    await closed;
  }

  private onLine(line: string): void {
    const message = JSON.parse(line) as PeerEvent | Answer;
    if ('event' in message) return this.onEvent(message);
    this.calls.get(message.id)?.(message);
    this.calls.delete(message.id);
  }

  private onEvent(event: PeerEvent): void {
    this.events.push(event);
    for (const waiter of this.waiters) {
      if (!waiter.matches(event)) continue;
      this.waiters.delete(waiter);
      waiter.resolve(event);
    }
  }

  private onEnd(how: string): void {
    this.ended = new Error(`The peer process ${how}. It wrote to stderr: ${this.complaints || '(nothing)'}`);
    for (const answer of this.calls.values()) answer({ id: 0, error: { message: this.ended.message, kind: 'ended' } });
    for (const waiter of this.waiters) waiter.reject(this.ended);
    this.calls.clear();
    this.waiters.clear();
  }
}

const matcher =
  (event: PeerEvent['event'], fields: Partial<PeerEvent>) =>
  (seen: PeerEvent): boolean =>
    Object.entries({ ...fields, event }).every(([name, value]) => seen[name as keyof PeerEvent] === value);

const encodeBytes = (value: unknown): unknown => {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.map(encodeBytes);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, encodeBytes(inner)]));
};
