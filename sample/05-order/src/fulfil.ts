import { workflow } from 'nestjs-asynq';
import { CapturePayment, CloseOrder, type Order, PackParcel, RenderInvoice, SendReceipt } from './tasks.js';

/** The life of an order: after the payment, three steps side by side; when all have succeeded, it is closed.
 * A step that has died cancels this, until somebody has run it again and it succeeds. */
export const fulfil = (order: Order) =>
  workflow('order:fulfil')
    .add('payment', CapturePayment, order)
    .add('receipt', SendReceipt, order, { after: 'payment' })
    .add('invoice', RenderInvoice, order, { after: 'payment' })
    .add('parcel', PackParcel, order, { after: 'payment' })
    .add('close', CloseOrder, order, { after: ['receipt', 'invoice', 'parcel'] });
