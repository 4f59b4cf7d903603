import { encode } from '@msgpack/msgpack';
import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { trace } from '@opentelemetry/api';
import { AsynqClient, type TaskInfo } from 'nestjs-asynq';
import { below, chance, oneOf } from './chance.js';
import { Charge, DeliverWebhook, ImportRows, type Order, ResizeImage, SendMail, SyncLegacy } from './tasks.js';

const CUSTOMERS = ['Ann Arbor', 'Bob Bobson', 'Cem Çelik', 'Dee Dupont', 'Eve Ößner'] as const;
const SKUS = ['apple', 'atlas', 'boots', 'brush', 'chair', 'clock'] as const;
const tracer = trace.getTracer('shop');

/** Simulates customers. A real shop enqueues in its controllers instead. */
@Injectable()
export class Traffic implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly timers: NodeJS.Timeout[] = [];
  private lastOrder = below(1e6) * 1e5; // each process and each start on the same Redis has its own numbers

  constructor(private readonly client: AsynqClient) {}

  async onApplicationBootstrap(): Promise<void> {
    this.every(400, () => this.placeOrder());
    this.every(900, () => this.client.enqueue(ResizeImage, encode({ image: `p-${below(999)}.png`, width: 640 })));
    this.every(1_200, () => this.webhook());
    this.every(12_000, () => this.client.enqueue(ImportRows, { supplier: oneOf(['Nord', 'Süd']), rows: 4_000 }));
    this.every(45_000, () => this.client.enqueue(SyncLegacy, { since: new Date().toISOString() }));
    await Promise.all(Array.from({ length: 20 }, () => this.placeOrder()));
    await this.client.enqueue(ImportRows, { supplier: 'Ost', rows: 6_000 });
    await this.client.enqueue(SyncLegacy, { since: '2019-01-01' });
  }

  onModuleDestroy(): void {
    for (const timer of this.timers) clearInterval(timer);
  }

  /** A request of a customer. A trace begins with it. */
  placeOrder(): Promise<TaskInfo> {
    return tracer.startActiveSpan('POST /orders', async (span) => {
      const order = this.order();
      const tenant = oneOf(['eu', 'us']);
      const { email } = order.customer;
      const later = { processIn: `${30 + below(600)}s`, unique: '1h' } as const;
      try {
        if (chance(20)) await this.client.enqueue(SendMail, { to: email, subject: `How was ${order.number}?` }, later);
        return await this.client.enqueue(Charge, order, { taskId: `order-${order.number}`, headers: { tenant } });
      } finally {
        span.end();
      }
    });
  }

  private order(): Order {
    const name = oneOf(CUSTOMERS);
    return {
      number: ++this.lastOrder,
      customer: { name, email: `${name.split(' ')[0]!.toLowerCase()}@example.com` },
      card: `4000 1234 5678 ${1000 + below(9000)}`,
      items: Array.from({ length: 1 + below(3) }, () => ({ sku: oneOf(SKUS), price: 5 + below(95) })),
    };
  }

  private webhook(): Promise<unknown> {
    const payloads = Array.from({ length: 1 + below(8) }, () => ({
      url: `https://partner-${below(3)}.example.com/hook`,
      event: oneOf(['order.paid', 'stock.low']),
    }));
    return this.client.enqueueMany(DeliverWebhook, payloads);
  }

  private every(milliseconds: number, work: () => Promise<unknown>): void {
    // While Redis is away, customers get an error page and try again.
    this.timers.push(setInterval(() => void work().catch(() => undefined), milliseconds));
  }
}
