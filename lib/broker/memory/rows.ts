import type { EnqueueRequest, EnqueueStatus } from '../broker.js';
import type { Caused, LinkedRequest, LinksRole } from '../links.js';
import type { ProducerRole } from '../producer.js';
import { type Row, type RowsRole, SenderAheadError } from '../rows.js';
import type { RepeatReply, RepeatRequest, UniquenessRole } from '../uniqueness.js';

export class MemoryRows implements RowsRole {
  /** By kind, queue and sender: the highest number. */
  private readonly highest = new Map<string, number>();

  constructor(
    private readonly producer: Pick<ProducerRole, 'enqueue'>,
    private readonly links: Pick<LinksRole, 'enqueue'>,
    private readonly uniqueness: Pick<UniquenessRole, 'enqueue'>,
  ) {}

  async enqueue(queue: string, sender: string, rows: readonly Row[], given?: number): Promise<EnqueueStatus[]> {
    const left = this.note('plain', queue, sender, rows, given);
    return withKnown<EnqueueStatus>(rows.length, 'enqueued', await this.producer.enqueue(queue, left));
  }

  async enqueueLinked(
    queue: string,
    sender: string,
    rows: readonly Row<LinkedRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }> {
    const reply = await this.links.enqueue(queue, this.note('linked', queue, sender, rows, given));
    return { ...reply, statuses: withKnown<EnqueueStatus>(rows.length, 'enqueued', reply.statuses) };
  }

  async enqueueRepeats(
    queue: string,
    sender: string,
    rows: readonly Row<RepeatRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly RepeatReply[] }> {
    const { replies, ...caused } = await this.uniqueness.enqueue(
      queue,
      this.note('repeats', queue, sender, rows, given),
    );
    const statuses = withKnown(rows.length, { status: 'enqueued' }, replies as readonly RepeatReply[]);
    return { ...caused, statuses };
  }

  /** Returns what was not brought before. The work of a call is done in the same turn. */
  private note<R extends EnqueueRequest>(
    kind: string,
    queue: string,
    sender: string,
    rows: readonly Row<R>[],
    given = Infinity,
  ): R[] {
    const name = `${kind}\n${queue}\n${sender}`;
    const highest = this.highest.get(name) ?? 0;
    if (highest > given) throw new SenderAheadError(queue, sender, highest);
    const left = rows.filter(({ number }) => number > highest);
    if (left.length > 0) this.highest.set(name, left.at(-1)!.number);
    return left.map(({ request }) => request);
  }
}

const withKnown = <Status>(count: number, enqueued: Status, statuses: readonly Status[]): Status[] =>
  new Array<Status>(count - statuses.length).fill(enqueued).concat(statuses);
