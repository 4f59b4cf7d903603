import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Payload, TaskCtx, type TaskContext, TaskHandler } from 'nestjs-asynq';
import { say } from './say.js';
import { CapturePayment, CloseOrder, type Order, PackParcel, RenderInvoice, SendReceipt } from './tasks.js';

@Injectable()
export class OrderHandlers {
  private printerHasPaper = false;

  @TaskHandler(CapturePayment)
  async capture(@Payload() { orderId }: Order): Promise<{ captureId: string }> {
    await wait(200);
    say(`${orderId}: the payment is captured`);
    return { captureId: `capture-of-${orderId}` };
  }

  /** Reads what an earlier step has returned. */
  @TaskHandler(SendReceipt)
  async receipt(@Payload() { orderId }: Order, @TaskCtx() task: TaskContext): Promise<{ mailedTo: string }> {
    const { captureId } = await task.workflow.result('payment', CapturePayment);
    say(`${orderId}: a receipt for ${captureId} is sent`);
    return { mailedTo: 'ann@example.com' };
  }

  /** Dies at its first attempt: the printer has no paper. Somebody brings some, and runs the step again. */
  @TaskHandler(RenderInvoice)
  async invoice(@Payload() { orderId }: Order): Promise<{ pages: number }> {
    await wait(300);
    if (!this.printerHasPaper) {
      this.printerHasPaper = true;
      throw new Error('the printer has no paper');
    }
    say(`${orderId}: the invoice is printed`);
    return { pages: 2 };
  }

  @TaskHandler(PackParcel)
  async pack(@Payload() { orderId }: Order): Promise<{ parcelId: string }> {
    await wait(500);
    say(`${orderId}: the parcel is packed`);
    return { parcelId: `parcel-of-${orderId}` };
  }

  @TaskHandler(CloseOrder)
  close(@Payload() { orderId }: Order): { closed: string } {
    say(`${orderId}: all is done, the order is closed`);
    return { closed: orderId };
  }
}
