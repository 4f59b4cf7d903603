import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AsynqClient, Payload, RevokeTask, SkipRetry, TaskHandler } from 'nestjs-asynq';
import { below, chance } from './chance.js';
import { Charge, type Order, ProductChanged, type Receipt, SendMail } from './tasks.js';

@Injectable()
export class Payments {
  constructor(private readonly client: AsynqClient) {}

  /** The tasks that it enqueues belong to the trace of the order. */
  @TaskHandler(Charge, { concurrency: 4, retryDelay: (retried) => 2_000 * (retried + 1) })
  async charge(@Payload() { number, customer, items }: Order): Promise<Receipt> {
    await wait(30 + below(150));
    if (chance(3)) throw new SkipRetry('card declined'); // archived at once: a retry does not help
    if (chance(12)) throw new Error('the bank does not answer');
    if (chance(1)) throw new RevokeTask('the customer has cancelled the order');
    await this.client.enqueue(SendMail, { to: customer.email, subject: `Order ${number}` });
    for (const { sku } of items) await this.client.enqueue(ProductChanged, { sku }, { group: `shelf:${sku[0]}` });
    return { total: items.reduce((sum, { price }) => sum + price, 0), reference: `R-${number}` };
  }
}
