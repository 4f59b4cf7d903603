import type { EnqueueRequest } from '../broker/broker.js';
import { type Full, takesRoom } from '../broker/enqueue-request.js';
import type { LinkedRequest } from '../broker/links.js';
import type { Clock } from '../clock.js';
import type { BoundedProducing, EnqueueReply, Producing } from '../enqueue/producing.js';
import { QueueFullError } from '../errors.js';
import type { ReadRoom } from '../task/queue-settings.js';
import { RoomLine } from './room-line.js';

/** Enqueues to queues that this client fills only so far. All others are left alone. */
export class BoundedProducer implements Producing {
  private readonly lines = new Map<string, RoomLine>();

  constructor(
    private readonly producer: BoundedProducing,
    private readonly rooms: ReadonlyMap<string, ReadRoom>,
    private readonly clock: Clock,
  ) {}

  enqueue(
    queue: string,
    requests: readonly EnqueueRequest[],
  ): Promise<readonly (EnqueueReply | Promise<EnqueueReply>)[]> {
    const room = this.rooms.get(queue);
    if (!room) return this.producer.enqueue(queue, requests);
    const line = this.lineOf(queue, room);
    return line.isEmpty ? this.send(queue, requests, room, line) : this.join(queue, requests, room, line);
  }

  /** Those who wait for room are refused after a last try. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.lines.values(), (line) => line.close()));
  }

  private async send(queue: string, requests: readonly EnqueueRequest[], room: ReadRoom, line: RoomLine) {
    const replies = await this.producer.enqueueBounded(queue, requests, room.maxPending);
    return replies.map((reply, index) => (isFull(reply) ? this.refuse(requests[index]!, reply, room, line) : reply));
  }

  /** Others wait already: what needs room stands behind them, and the rest does not wait. */
  private async join(queue: string, requests: readonly EnqueueRequest[], room: ReadRoom, line: RoomLine) {
    const waiting = requests.map((request) => (needsRoom(request) ? line.add(request) : undefined));
    const others = requests.filter((_, index) => !waiting[index]);
    const replies = others.length === 0 ? [] : await this.send(queue, others, room, line);
    let next = 0;
    return waiting.map((promise) => promise ?? replies[next++]!);
  }

  private refuse(request: EnqueueRequest, { pending }: Full, { maxPending, waitForRoom }: ReadRoom, line: RoomLine) {
    return waitForRoom > 0 ? line.add(request) : new QueueFullError(request.message.queue, pending, maxPending);
  }

  private lineOf(queue: string, room: ReadRoom): RoomLine {
    let line = this.lines.get(queue);
    if (!line) this.lines.set(queue, (line = new RoomLine(queue, room, this.producer, this.clock)));
    return line;
  }
}

/** A task that waits for others is not pending. */
const needsRoom = (request: EnqueueRequest & Partial<LinkedRequest>): boolean =>
  takesRoom(request) && request.wait === undefined;

const isFull = (reply: EnqueueReply | Full): reply is Full => typeof reply === 'object' && 'pending' in reply;
