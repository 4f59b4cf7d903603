import { type Chunk, taskIdOfMember } from '../broker/batches.js';
import type { EnqueueRequest, EnqueueStatus } from '../broker/enqueue-request.js';
import { infoOf, injected, type PreparedTask } from '../enqueue/prepared-task.js';
import type { TaskKind } from '../enqueue/task-kinds.js';
import { CALL_LIMITS, Requests } from '../enqueue/requests.js';
import { replyError } from '../enqueue/enqueue-result.js';
import { refuseRepeat } from '../enqueue/repeats.js';
import { BatchAddError, BatchEndedError, BatchNotFoundError, BrokerUnavailableError } from '../errors.js';
import type { Payloads } from '../task/batch.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { BatchParts } from './parts.js';
import { NotAddedList } from './not-added.js';

/** Chunks whose numbers are reserved by one call. */
const CHUNKS_PER_WAVE = 4;
/** One wave is being written while the next is prepared. */
const WAVES_IN_FLIGHT = 2;

const GIVEN_UP =
  'the chunk was given up, because this process took more than a minute from reserving its numbers to creating its tasks; add them again';

/** A member to be, and the index of its payload. */
interface Owner {
  readonly index: number;
  readonly task: PreparedTask;
}

type Members = Requests<Owner>;

export interface Target {
  readonly home: string;
  readonly batch: string;
  readonly byMember: boolean;
}

/**
 * One call of `add`: reads payloads as it needs them, makes chunks of them, and sends these in waves:
 * numbers are reserved at the home of the batch, the chunks are created, each in one step, and the
 * home learns how many members there are. If this process dies in between, the home asks for what was
 * created. A chunk that fails affects no other, but nothing is read after it.
 */
export class Adder {
  private chunk: Members = new Requests(CALL_LIMITS);
  private wave: Members[] = [];
  /** The waves under way, oldest first. None rejects. */
  private readonly sending: Promise<void>[] = [];
  private readonly notAdded = new NotAddedList();
  private readonly refusals = new Map<EnqueueStatus, Error>();
  private added = 0;
  private read = 0;
  /** Why nothing more is written. */
  private stopReason: Error | undefined;

  constructor(
    private readonly parts: BatchParts,
    private readonly target: Target,
    private readonly kind: TaskKind,
    private readonly span: EnqueueSpan | undefined,
  ) {}

  /** How many payloads were not added. */
  get failures(): number {
    return this.notAdded.size;
  }

  /** @returns how many were added: all. @throws BatchAddError, or the error, if there is one for all */
  async run(payloads: Payloads<unknown>): Promise<number> {
    let readError: { readonly cause: unknown } | undefined;
    try {
      if (Symbol.asyncIterator in payloads) await this.readAsync(payloads);
      else await this.readSync(payloads);
    } catch (cause) {
      readError = { cause };
    }
    this.closeChunk();
    if (this.wave.length > 0) await this.send();
    await Promise.all(this.sending);
    if (readError || this.failures > 0) throw this.failure(readError);
    return this.added;
  }

  private async readSync(payloads: Iterable<unknown>): Promise<void> {
    for (const payload of payloads) {
      const full = this.take(payload);
      if (full) await full;
      if (this.isStopped) return;
    }
  }

  private async readAsync(payloads: AsyncIterable<unknown>): Promise<void> {
    for await (const payload of this.parts.sources.read(payloads)) {
      const full = this.take(payload);
      if (full) await full;
      if (this.isStopped) return;
    }
  }

  /** Returns a promise when the next payload has to wait. */
  private take(payload: unknown): Promise<void> | undefined {
    const index = this.read++;
    const task = this.prepare(index, payload);
    if (!task) return undefined;
    if (!this.chunk.hasRoomFor(task.request)) this.closeChunk();
    this.chunk.add(task.request, { index, task });
    const { length } = this.wave;
    // A slow source does not have to fill a wave.
    return length >= CHUNKS_PER_WAVE || (length > 0 && this.sending.length === 0) ? this.send() : undefined;
  }

  private prepare(index: number, payload: unknown): PreparedTask | undefined {
    const { preparer, broker } = this.parts;
    try {
      const made = preparer.prepare(this.kind, payload, broker.clock.now());
      if (made.repeats) refuseRepeat(made, 'a member of a batch');
      return injected(made, this.span);
    } catch (error) {
      this.notAdded.refuse(index, error as Error);
      return undefined;
    }
  }

  private closeChunk(): void {
    if (this.chunk.requests.length === 0) return;
    this.wave.push(this.chunk);
    this.chunk = new Requests(CALL_LIMITS);
  }

  /** Resolves when the wave is under way, not when it is written. */
  private async send(): Promise<void> {
    const { wave } = this;
    this.wave = [];
    while (this.sending.length >= WAVES_IN_FLIGHT) await this.sending[0];
    if (this.stopReason) return this.fail(wave, this.stopReason);
    const sent: Promise<void> = this.write(wave).then(() => void this.sending.splice(this.sending.indexOf(sent), 1));
    this.sending.push(sent);
  }

  private get isStopped(): boolean {
    return this.stopReason !== undefined || this.notAdded.isFull;
  }

  private async write(wave: readonly Members[]): Promise<void> {
    try {
      const chunks = await this.reserve(wave);
      const created = await Promise.all(wave.map((members, at) => this.create(chunks[at]!, members)));
      const known = chunks.flatMap(({ base }, at) =>
        created[at] === undefined ? [] : [{ base, created: created[at] }],
      );
      if (known.length > 0) await this.confirm(known);
    } catch (error) {
      this.fail(wave, error as Error);
    }
  }

  private async reserve(wave: readonly Members[]): Promise<readonly Chunk[]> {
    const { home, batch, byMember } = this.target;
    const { queue } = this.kind.settings;
    const requests = wave.map((members) => ({ queue, count: members.requests.length }));
    const { status, chunks } = await this.parts.broker.batches.reserve(home, batch, requests, byMember);
    if (status === 'missing') throw new BatchNotFoundError(home, batch);
    if (status === 'ended') throw new BatchEndedError(home, batch);
    return chunks;
  }

  /** Returns how many members there are; `undefined` when that is not known. Never rejects. */
  private async create(chunk: Chunk, { owners }: Members): Promise<number | undefined> {
    const { parts, target } = this;
    const idOf = (at: number): string => taskIdOfMember(target.batch, chunk.base + at);
    const requests = owners.map(({ task: { request } }, at) => withId(request, idOf(at)));
    try {
      const { status, statuses, ...caused } = await parts.broker.batches.add(chunk, requests);
      if (status === 'void') throw new BrokerUnavailableError(GIVEN_UP);
      parts.relay.carry(caused);
      return owners.reduce((sum, owner, at) => sum + Number(this.settle(owner, requests[at]!, statuses[at]!)), 0);
    } catch (error) {
      parts.events?.emit('enqueueFailed', { queue: chunk.queue, tasks: owners.length, error });
      this.fail([{ owners }], error as Error);
      return undefined;
    }
  }

  /** Returns whether the task is a member now. */
  private settle({ index, task }: Owner, request: EnqueueRequest, status: EnqueueStatus): boolean {
    if (status !== 'enqueued') {
      this.notAdded.note(index, this.refusal(status, request));
      return false;
    }
    this.added += 1;
    const { events } = this.parts;
    if (events?.wants('taskEnqueued')) events.emit('taskEnqueued', { task: infoOf({ ...task, request }) });
    return true;
  }

  /** The same for all: it names what they have in common, and there may be many. */
  private refusal(status: EnqueueStatus, { message }: EnqueueRequest): Error {
    let error = this.refusals.get(status);
    if (!error) this.refusals.set(status, (error = replyError(status, message)!));
    return error;
  }

  /** If it fails, the home asks for the chunks that nobody confirmed. */
  private async confirm(chunks: readonly { readonly base: number; readonly created: number }[]): Promise<void> {
    const { parts, target } = this;
    const reply = await parts.broker.batches.confirm(target.home, target.batch, chunks).catch(() => undefined);
    if (reply) parts.relay.carry(reply);
  }

  private fail(wave: readonly Pick<Members, 'owners'>[], error: Error): void {
    this.stopReason ??= error;
    for (const { owners } of wave) for (const { index } of owners) this.notAdded.note(index, error);
  }

  private failure(readError: { readonly cause: unknown } | undefined): Error {
    const { added, read, failures } = this;
    const notAdded = this.notAdded.inOrder();
    const [first] = notAdded;
    if (!readError && added === 0 && notAdded.length === 1) return first!.error;
    const id = JSON.stringify(this.target.batch);
    const texts = [`${count(added)} of ${count(read)} payloads are members of batch ${id}`];
    if (first) texts.push(`${count(failures)} are not, from index ${first.from} on: ${first.error.message}`);
    if (readError) texts.push(`reading the next failed: ${textOf(readError.cause)}`);
    const counts = { added, notAdded, read };
    const message = `${texts.join('; ')}; add those again that should be members (see notAdded and read)`;
    return new BatchAddError(message, counts, { cause: readError ? readError.cause : first!.error });
  }
}

const count = (number: number): string => number.toLocaleString('en-US');
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const withId = (request: EnqueueRequest, id: string): EnqueueRequest => ({
  ...request,
  message: { ...request.message, id },
});
