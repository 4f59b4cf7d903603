import { Injectable } from '@nestjs/common';
import { Payload, SkipRetry, Steps, TaskHandler, type TaskSteps } from 'nestjs-asynq';
import { say } from './say.js';
import { Approval, FulfilOrder, MakeThumbnail, type Order } from './tasks.js';

@Injectable()
export class OrderHandlers {
  @TaskHandler(FulfilOrder)
  async fulfil(@Payload() { orderId }: Order, @Steps() steps: TaskSteps) {
    const captureId = await steps.run('capture', () => this.capture(orderId), { undo: (id) => this.refund(id) });
    const thumbnail = await steps.call('thumbnail', MakeThumbnail, { orderId, size: 3000 });
    await steps.run('ask', () => say(`${orderId}: brightness ${thumbnail.brightness}; do you approve it?`));
    const { approved, by } = await steps.waitFor('approved', Approval, { timeout: '7d' });
    if (!approved) throw new SkipRetry(`${by} does not approve ${orderId}`);
    await steps.run('ship', () => say(`${orderId}: it is shipped`));
    return { captureId, approvedBy: by };
  }

  private capture(orderId: string): string {
    say(`${orderId}: the payment is captured`);
    return `capture-of-${orderId}`;
  }

  private refund(captureId: string): void {
    say(`${captureId}: the payment is refunded`);
  }
}
