import { defineTask } from 'nestjs-asynq';

export interface Order {
  readonly orderId: string;
}

export const QUEUES = { orders: 'orders', imports: 'imports' } as const;

const step = { queue: QUEUES.orders, maxRetry: 0 }; // a step that fails dies at once, so that you can rerun it

export const CapturePayment = defineTask<Order, { captureId: string }>('payment:capture', step);
export const SendReceipt = defineTask<Order, { mailedTo: string }>('receipt:send', step);
export const RenderInvoice = defineTask<Order, { pages: number }>('invoice:render', step);
export const PackParcel = defineTask<Order, { parcelId: string }>('parcel:pack', step);
export const CloseOrder = defineTask<Order, { closed: string }>('order:close', step);

export interface Row {
  readonly article: number;
}

export const ImportRow = defineTask<Row>('import:row', { queue: QUEUES.imports });
export const ImportDone = defineTask<{ file: string }>('import:done', { queue: QUEUES.imports });
export const ImportAlarm = defineTask<{ file: string }>('import:alarm', { queue: QUEUES.imports });
