import { Worker, type ResourceLimits } from 'node:worker_threads';
import type { Clock, ClockTimer } from '../clock.js';
import { ThreadDiedError } from '../errors.js';
import type { TaskContext } from '../task/context.js';
import { CONTEXT_METHODS, type FromThread, type SentTask, type ThreadSetting, type ToThread } from './messages.js';
import { seal, unseal } from './sealed-error.js';

/** The global under which this package, once it is loaded in a thread, finds what to run there. */
export const THREAD_PROGRAM = Symbol.for('nestjs-asynq.thread');

/** How long a thread may take to load its module. */
const START_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Loads the module of the application, which loads this package: so a thread has the copy of it whose decorators the module uses. Output
 * goes to the process at once, and not through its event loop, where a flood of it would stay in memory.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
for (const [stream, fd] of [[process.stdout, 1], [process.stderr, 2]]) {
  stream.write = (chunk, encoding, then) => {
    try { writeSync(fd, chunk, typeof encoding === 'string' ? encoding : undefined); } catch {}
    const done = typeof encoding === 'function' ? encoding : then;
    if (done) queueMicrotask(done);
    return true;
  };
}
import(workerData.module).then((exported) => {
  const program = globalThis[Symbol.for('nestjs-asynq.thread')];
  if (!program) throw new Error(workerData.module + ' does not load nestjs-asynq, so it has no handlers');
  return program(exported, workerData, parentPort);
}).catch((error) => setImmediate(() => { throw error; }));
`;

export interface ThreadDeps {
  readonly clock: Clock;
  readonly setting: ThreadSetting;
  readonly resourceLimits: ResourceLimits | undefined;
  /** It is gone: it takes no task any more. */
  readonly onEnd: (thread: Thread, error: ThreadDiedError | undefined) => void;
  /** It may take the next task. */
  readonly onIdle: (thread: Thread) => void;
}

interface Running {
  readonly task: TaskContext;
  readonly resolve: (result: Buffer | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** Of a call whose end nobody waits for. */
  refused?: { readonly error: unknown };
}

/** One thread: runs a task at a time. Whatever ends it fails that task alone. */
export class Thread {
  private readonly worker: Worker;
  private readonly starting: ClockTimer;
  private running: Running | undefined;
  private ended = false;

  constructor(private readonly deps: ThreadDeps) {
    const { setting, resourceLimits, clock } = deps;
    this.worker = new Worker(PROGRAM, {
      eval: true,
      workerData: setting,
      name: 'nestjs-asynq handlers',
      ...(resourceLimits && { resourceLimits }),
    });
    this.worker.unref();
    this.worker.on('message', (message: FromThread) => this.receive(message));
    this.worker.on('error', (error) => this.end(new ThreadDiedError(reasonOf(error), { cause: error })));
    this.worker.on('messageerror', (error) => this.end(new ThreadDiedError(error.message, { cause: error })));
    this.worker.on('exit', (code) => this.end(new ThreadDiedError(`it has exited with code ${code}`)));
    const late = `it has not loaded ${setting.module} within ${START_TIMEOUT_MS / 1000} s`;
    this.starting = clock.after(START_TIMEOUT_MS, () => this.terminate(new ThreadDiedError(late)));
  }

  /** Resolves to the bytes of the result. */
  run(pattern: string, task: TaskContext): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      this.running = { task, resolve, reject };
      const payload = new Uint8Array(task.payload);
      this.send({ kind: 'run', pattern, task: sentTask(task, payload) }, [payload.buffer]);
    });
  }

  abort(reason: unknown): void {
    if (this.running) this.send({ kind: 'abort', reason: seal(reason) });
  }

  /** Ends it at once; the task that it runs fails with `error`. */
  terminate(error: unknown): void {
    this.end(error);
    void this.worker.terminate();
  }

  /** Ends it when the module has been closed. */
  async close(): Promise<void> {
    if (this.ended) return;
    const gone = new Promise<void>((resolve) => this.worker.once('exit', () => resolve()));
    this.send({ kind: 'close' });
    const timer = this.deps.clock.after(CLOSE_TIMEOUT_MS, () => void this.worker.terminate());
    this.ended = true;
    await gone;
    timer.cancel();
  }

  private send(message: ToThread, transfer: readonly ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private receive(message: FromThread): void {
    const { running } = this;
    switch (message.kind) {
      case 'ready':
        this.starting.cancel();
        return this.deps.onIdle(this);
      case 'call':
        return void this.call(message);
      case 'done':
        this.running = undefined;
        if (running?.refused) running.reject(running.refused.error);
        else running?.resolve(message.result && Buffer.from(message.result.buffer as ArrayBuffer));
        return this.deps.onIdle(this);
      case 'failed':
        this.running = undefined;
        running?.reject(unseal(message.error));
        return this.deps.onIdle(this);
    }
  }

  /** A method of the context of the task, which lives here. What it refuses when nobody waits for it fails the task at its end. */
  private async call({ call, method, args }: Extract<FromThread, { kind: 'call' }>): Promise<void> {
    const { running } = this;
    let refused: { readonly error: unknown } | undefined;
    try {
      if (!running || !(method in CONTEXT_METHODS)) throw new Error('the task has ended');
      const context = running.task as unknown as Record<string, (...args: unknown[]) => unknown>;
      const returned = context[method]!(...args.map(asBuffer));
      if (call > 0) await returned;
    } catch (error) {
      refused = { error };
    }
    if (call === 0 && running && refused) running.refused ??= refused;
    if (call > 0 && !this.ended) this.send({ kind: 'reply', call, error: refused && seal(refused.error) });
  }

  private end(error: unknown): void {
    if (this.ended) return;
    this.ended = true;
    this.starting.cancel();
    const { running } = this;
    this.running = undefined;
    this.deps.onEnd(this, error instanceof ThreadDiedError ? error : undefined);
    running?.reject(error);
  }
}

const asBuffer = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value) : value);

const sentTask = (task: TaskContext, payload: Uint8Array): SentTask => ({
  id: task.id,
  type: task.type,
  queue: task.queue,
  headers: { ...task.headers },
  payload,
  retried: task.retried,
  maxRetry: task.maxRetry,
  waited: task.waited,
  deadline: task.deadline.getTime(),
});

function reasonOf(error: Error): string {
  const { code } = error as { code?: unknown };
  if (code === 'ERR_WORKER_OUT_OF_MEMORY')
    return `it is out of memory (${error.message}); see resourceLimits of threads`;
  return `an error was not caught there: ${error.message}`;
}
