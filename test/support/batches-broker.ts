import type { BatchesRole, Chunk, NewBatch } from '../../lib/broker/batches.js';
import type { EnqueueRequest, EnqueueStatus } from '../../lib/broker/enqueue-request.js';
import type { ClientBroker } from '../../lib/client/client-options.js';
import { FakeProducerBroker } from './producer-broker.js';

type Reserved = Awaited<ReturnType<BatchesRole['reserve']>>;
type Added = Awaited<ReturnType<BatchesRole['add']>>;

/** A broker whose batches are recorded: replies, failures and delays are the test's. */
export class FakeBatchesBroker extends FakeProducerBroker {
  readonly opened: { readonly home: string; readonly batch: NewBatch }[] = [];
  readonly reserved: { readonly home: string; readonly counts: number[]; readonly byMember: boolean | undefined }[] =
    [];
  readonly added: { readonly chunk: Chunk; readonly requests: readonly EnqueueRequest[] }[] = [];
  readonly confirmed: { readonly base: number; readonly created: number }[][] = [];
  readonly closed: string[] = [];
  reserveStatus: Reserved['status'] = 'reserved';
  memberStatus: (request: EnqueueRequest) => EnqueueStatus = () => 'enqueued';
  /** Called before a chunk is added; may throw, or keep it waiting. */
  beforeAdd: (chunk: Chunk) => Promise<void> | void = () => undefined;
  chunkStatus: (chunk: Chunk) => Added['status'] = () => 'added';
  confirmError: Error | undefined;
  private next = 0;

  override readonly batches: ClientBroker['batches'] = {
    open: async (home, batch) => {
      this.opened.push({ home, batch });
      return { parcels: [] };
    },
    reserve: async (home, batch, requests, byMember) => {
      this.reserved.push({ home, counts: requests.map(({ count }) => count), byMember });
      if (this.reserveStatus !== 'reserved') return { status: this.reserveStatus, chunks: [] };
      const chunks = requests.map(({ queue, count }) => {
        const base = this.next;
        this.next += count;
        return { batch, home, queue, base, count };
      });
      return { status: 'reserved', chunks };
    },
    add: async (chunk, requests) => {
      await this.beforeAdd(chunk);
      const status = this.chunkStatus(chunk);
      if (status === 'added') this.added.push({ chunk, requests });
      return { status, statuses: requests.map((request) => this.memberStatus(request)), parcels: [] };
    },
    confirm: async (_home, _batch, chunks) => {
      if (this.confirmError) throw this.confirmError;
      this.confirmed.push(chunks.map(({ base, created }) => ({ base, created })));
      return { parcels: [] };
    },
    close: async (home, batch) => {
      this.closed.push(`${home} ${batch}`);
      return { status: batch === 'gone' ? 'missing' : 'closed', parcels: [] };
    },
    progress: async (home, id) => {
      if (id === 'gone') return undefined;
      const counts = { total: 3, pending: 1, succeeded: 1, failed: 1, failedIn: ['rows'] };
      return { home, id, name: 'n', state: 'closed', ...counts, openedAt: 1_000, endedAt: undefined };
    },
    batches: async () => [],
    delete: async () => ({ status: 'deleted', parcels: [] }),
  };
}
