import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { EnqueueRequest, EnqueueStatus } from '../broker.js';
import type { Caused, LinkedRequest } from '../links.js';
import { type Row, type RowsRole, SenderAheadError } from '../rows.js';
import type { RepeatReply, RepeatRequest } from '../uniqueness.js';
import { persist, statusesOf } from './producer.js';
import { nanoseconds } from './scripts/arguments.js';
import { encodeRequests } from './scripts/requests.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

/** Rows with links of a sender, and those with a policy for repeats, have their highest number in other fields. */
const linkedField = (sender: string): string => `${sender}:linked`;
const repeatsField = (sender: string): string => `${sender}:repeats`;

/** What is to be noted with the rows of a call. */
export type RowRange = readonly [sender: string, first: string, last: string];

/** What RowsRole needs of the roles whose tasks it creates. */
export interface RowsDeps {
  /** Lists a queue, as RedisProducer.register. */
  register(queue: string): Promise<void> | undefined;
  /** As LinksRole.enqueue; or the highest number, when the first row was brought before. */
  enqueueLinked(
    queue: string,
    requests: readonly LinkedRequest[],
    rows: RowRange,
  ): Promise<(Caused & { readonly statuses: readonly EnqueueStatus[] }) | number>;
  /** As UniquenessRole.enqueue; or the highest number. */
  enqueueRepeats(
    queue: string,
    requests: readonly RepeatRequest[],
    rows: RowRange,
  ): Promise<(Caused & { readonly statuses: readonly RepeatReply[] }) | number>;
}

/** Enqueues over the connection `produce`. */
export class RedisRows implements RowsRole {
  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly deps: RowsDeps,
  ) {}

  async enqueue(queue: string, sender: string, rows: readonly Row[], given?: number): Promise<EnqueueStatus[]> {
    const { statuses } = await once(rows, { queue, sender, given }, ENQUEUED, async (left) => {
      const reply = await this.create(queue, requestsOf(left), rangeOf(sender, left));
      return typeof reply === 'number' ? reply : { statuses: statusesOf(left.length, reply) };
    });
    return statuses;
  }

  enqueueLinked(
    queue: string,
    sender: string,
    rows: readonly Row<LinkedRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }> {
    return once(rows, { queue, sender, given }, ENQUEUED, (left) =>
      this.deps.enqueueLinked(queue, requestsOf(left), rangeOf(linkedField(sender), left)),
    ).then((reply) => ({ parcels: [], ...reply }));
  }

  enqueueRepeats(
    queue: string,
    sender: string,
    rows: readonly Row<RepeatRequest>[],
    given?: number,
  ): Promise<Caused & { readonly statuses: readonly RepeatReply[] }> {
    return once(rows, { queue, sender, given }, REPEAT_ENQUEUED, (left) =>
      this.deps.enqueueRepeats(queue, requestsOf(left), rangeOf(repeatsField(sender), left)),
    ).then((reply) => ({ parcels: [], ...reply }));
  }

  private async create(queue: string, requests: readonly EnqueueRequest[], rows: RowRange) {
    const keys = this.keyspace.queue(queue);
    const encoded = encodeRequests(keys, requests);
    await this.deps.register(queue);
    const now = this.clock.now();
    const first: Argument[] = [encoded.taskPrefix, String(floorSeconds(now)), nanoseconds(now), '0', encoded.routes];
    const argv = first.concat(encoded.rest, rows);
    // Sent again, it finds what the first call has noted.
    const reply = await persist(() =>
      this.scripts.run('produce', 'enqueueRows', [...encoded.keys, keys.senders], argv),
    );
    return Array.isArray(reply) ? (reply as number[]) : Number(reply);
  }
}

const ENQUEUED: EnqueueStatus = 'enqueued';
const REPEAT_ENQUEUED: RepeatReply = { status: 'enqueued' };

/** Leaves out rows that were brought before. Their statuses are unknown: they count as enqueued. */
async function once<R extends EnqueueRequest, Status, Reply extends { readonly statuses: readonly Status[] }>(
  rows: readonly Row<R>[],
  { queue, sender, given = Infinity }: { queue: string; sender: string; given: number | undefined },
  enqueued: Status,
  send: (left: readonly Row<R>[]) => Promise<Reply | number>,
): Promise<Omit<Partial<Reply>, 'statuses'> & { readonly statuses: Status[] }> {
  let left = rows;
  while (left.length > 0) {
    const reply = await send(left);
    const known = new Array<Status>(rows.length - left.length).fill(enqueued);
    if (typeof reply !== 'number') return { ...reply, statuses: known.concat(reply.statuses) };
    if (reply > given) throw new SenderAheadError(queue, sender, reply);
    left = left.filter(({ number }) => number > reply);
  }
  return { statuses: new Array<Status>(rows.length).fill(enqueued) } as never;
}

const requestsOf = <R extends EnqueueRequest>(rows: readonly Row<R>[]): R[] => rows.map(({ request }) => request);

const rangeOf = (sender: string, rows: readonly Row[]): RowRange => [
  sender,
  String(rows[0]!.number),
  String(rows.at(-1)!.number),
];
