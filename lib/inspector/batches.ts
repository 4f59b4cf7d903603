import { viewBatch } from '../batches/info.js';
import type { Broker } from '../broker/broker.js';
import { mapConcurrent } from '../async.js';
import { BatchNotFoundError, BatchRunningError, InvalidOptionError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import type { BatchInfo } from '../task/batch.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { requireQueueName } from './known-queue.js';
import { linkedQueues } from './linked-queues.js';
import { type PageOptions, toRange } from './list-options.js';

type BatchesBroker = Pick<Broker, 'batches' | 'links' | 'inspection'>;

/** Queues that are asked at the same time. */
const MAX_CALLS_AT_ONCE = 8;

export interface BatchListOptions extends PageOptions {
  /** Only batches that live in this queue. Default: those of all queues. */
  readonly queue?: string;
}

/** @throws InvalidOptionError */
export async function listBatches(broker: BatchesBroker, options: BatchListOptions = {}): Promise<BatchInfo[]> {
  requireObject(options, 'the options of a list', InvalidOptionError);
  rejectUnknownKeys(options, ['queue', 'size', 'page'], 'list option', InvalidOptionError);
  const { queue, size: wanted, page } = options;
  const { offset, size } = toRange({ size: wanted, page });
  if (queue !== undefined) {
    return (await broker.batches.batches(requireQueueName(queue), { offset, size })).map(viewBatch);
  }
  const homes = await linkedQueues(broker);
  const range = { offset: 0, size: offset + size };
  const lists = await mapConcurrent(homes, MAX_CALLS_AT_ONCE, (home) => broker.batches.batches(home, range));
  const all = lists.flat().sort((a, b) => b.openedAt - a.openedAt);
  return all.slice(offset, offset + size).map(viewBatch);
}

/** @throws InvalidOptionError */
export async function getBatch({ batches }: BatchesBroker, queue: string, id: string): Promise<BatchInfo | undefined> {
  const progress = await batches.progress(requireQueueName(queue), checkedId(id));
  return progress && viewBatch(progress);
}

/** @throws InvalidOptionError, BatchNotFoundError */
export async function closeBatch(
  { batches }: BatchesBroker,
  relay: Pick<Relay, 'carry'>,
  queue: string,
  id: string,
): Promise<void> {
  const { status, ...caused } = await batches.close(requireQueueName(queue), checkedId(id));
  if (status === 'missing') throw new BatchNotFoundError(queue, id);
  relay.carry(caused);
}

/** @throws InvalidOptionError, BatchNotFoundError, BatchRunningError */
export async function deleteBatch(
  { batches }: BatchesBroker,
  relay: Pick<Relay, 'carry'>,
  queue: string,
  id: string,
): Promise<void> {
  const { status, ...caused } = await batches.delete(requireQueueName(queue), checkedId(id));
  if (status === 'missing') throw new BatchNotFoundError(queue, id);
  if (status === 'running') throw new BatchRunningError(queue, id);
  relay.carry(caused);
}

const checkedId = (id: string): string => requireNonBlank(id, 'batch ID', InvalidOptionError);
