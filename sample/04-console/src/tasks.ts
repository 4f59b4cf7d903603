import { bytesCodec, defineTask } from 'nestjs-asynq';

/** The sample has its own queues, so it does not touch other tasks on the same Redis. */
export const QUEUES = {
  payments: 'shop:payments',
  mail: 'shop:mail',
  media: 'shop:media',
  imports: 'shop:imports',
  search: 'shop:search',
} as const;

export interface Order {
  readonly number: number;
  readonly customer: { readonly name: string; readonly email: string };
  readonly card: string;
  readonly items: readonly { readonly sku: string; readonly price: number }[];
}

export interface Receipt {
  readonly total: number;
  readonly reference: string;
}

/** Enqueued with the number of the order as its id, so it runs once per order. */
export const Charge = defineTask<Order, Receipt>('order:charge', {
  queue: QUEUES.payments,
  maxRetry: 4,
  timeout: '10s',
  retention: '10m',
});

export const SendMail = defineTask<{ to: string; subject: string }>('mail:send', {
  queue: QUEUES.mail,
  maxRetry: 8,
  retention: '2m',
});

export const DeliverWebhook = defineTask<{ url: string; event: string }>('webhook:deliver', {
  queue: QUEUES.mail,
  maxRetry: 2,
  headers: { authorization: 'Bearer not-for-everyone' },
});

/** From a team that uses Go and MessagePack: the payload is not JSON. */
export const ResizeImage = defineTask<Uint8Array, { width: number; bytes: number }>('image:resize', {
  queue: QUEUES.media,
  retention: '10m',
  codec: bytesCodec,
});

/** Runs long, reports its progress, and can be cancelled. */
export const ImportRows = defineTask<{ supplier: string; rows: number }>('import:rows', {
  queue: QUEUES.imports,
  maxRetry: 1,
  timeout: '5m',
  retention: '10m',
});

/** Has no handler, because it is always in a group. The update made of the group runs instead. */
export const ProductChanged = defineTask<{ sku: string }>('product:changed', { queue: QUEUES.search });

export const UpdateIndex = defineTask<{ shelf: string; skus: string[] }>('search:update', {
  queue: QUEUES.search,
  retention: '5m',
});

/** The last release removed its handler, but a process still enqueues it. */
export const SyncLegacy = defineTask<{ since: string }>('legacy:sync', { queue: QUEUES.imports, maxRetry: 3 });
