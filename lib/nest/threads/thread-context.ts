import { InvalidStepError, NotAMemberError, NotAStepError } from '../../errors.js';
import { encodeJson } from '../../task/codec.js';
import type { TaskBatch } from '../../task/batch.js';
import type { TaskContext } from '../../task/context.js';
import type { TaskSteps } from '../../task/steps.js';
import type { WorkflowContext } from '../../task/workflow-context.js';
import { ThreadNotes } from './thread-notes.js';
import type { ContextMethod, SentTask } from '../../threads/messages.js';
import { noStepsInThread } from '../names/nest.messages.js';

/** Calls a method of the context where the server is. */
export type CallServer = (method: ContextMethod, args: readonly unknown[]) => Promise<void>;

/** The context of a task in a thread. Its links and steps stay with the server. */
export class ThreadTaskContext implements TaskContext {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
  readonly retried: number;
  readonly maxRetry: number;
  readonly waited: number;
  readonly deadline: Date;
  readonly isMember = false;
  readonly isStep = false;
  readonly #controller = new AbortController();
  readonly #call: CallServer;
  readonly #notes: ThreadNotes;

  constructor(sent: SentTask, call: CallServer) {
    const { payload, deadline } = sent;
    this.id = sent.id;
    this.type = sent.type;
    this.queue = sent.queue;
    this.headers = sent.headers;
    this.payload = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    this.retried = sent.retried;
    this.maxRetry = sent.maxRetry;
    this.waited = sent.waited as number;
    this.deadline = new Date(deadline);
    this.#call = call;
    this.#notes = new ThreadNotes((method, args) => void call(method, args));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** What is no bytes is encoded here. */
  writeResult(result: unknown): Promise<void> {
    const encoded = encodeJson(result);
    return this.#call('writeResult', [typeof encoded === 'string' ? Buffer.from(encoded) : encoded]);
  }

  spent(amount: number): void {
    void this.#call('spent', [amount]);
  }

  get notes(): ThreadNotes {
    return this.#notes;
  }

  progress(fraction: number, text?: string): void {
    this.#notes.progress(fraction, text);
  }

  log(text: string): void {
    this.#notes.log(text);
  }

  emit(chunk: unknown): void {
    this.#notes.emit(chunk);
  }

  get steps(): TaskSteps {
    throw new InvalidStepError(noStepsInThread(this.type));
  }

  get batch(): TaskBatch {
    throw new NotAMemberError(this);
  }

  get workflow(): WorkflowContext {
    throw new NotAStepError(this);
  }

  toJSON(): object {
    const { id, type, queue, retried, maxRetry } = this;
    return { id, type, queue, retried, maxRetry };
  }
}
