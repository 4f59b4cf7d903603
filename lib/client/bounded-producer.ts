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

  /**
   * Others wait already: what needs room stands behind them, and the rest does not wait. A task that may be there already needs none then,
   * which a call finds that gives room to nobody.
   */
  private async join(queue: string, requests: readonly EnqueueRequest[], room: ReadRoom, line: RoomLine) {
    const replies = new Array<EnqueueReply | Promise<EnqueueReply>>(requests.length);
    const asking: number[] = [];
    const others: number[] = [];
    requests.forEach((request, index) => {
      if (!needsRoom(request)) others.push(index);
      else if (line.isFirst(request)) asking.push(index);
      else replies[index] = line.add(request);
    });
    const send = async (indexes: readonly number[], bound: ReadRoom): Promise<void> => {
      if (indexes.length === 0) return;
      const some = indexes.map((index) => requests[index]!);
      const found = await this.send(queue, some, bound, line);
      found.forEach((reply, at) => (replies[indexes[at]!] = reply));
    };
    await Promise.all([send(asking, { ...room, maxPending: 0 }), send(others, room)]);
    return replies;
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
