import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Payload, TaskHandler } from 'nestjs-asynq';
import { below, chance } from './chance.js';
import { DeliverWebhook, SendMail } from './tasks.js';

/** An error class of its own, so that dashboards can group by it. */
class MailboxError extends Error {
  override readonly name = 'MailboxError';
}

@Injectable()
export class Post {
  @TaskHandler(SendMail, { retryDelay: () => 5_000 })
  async send(@Payload(SendMail, 'to') to: string): Promise<{ accepted: string }> {
    await wait(20 + below(60));
    if (chance(6)) throw new MailboxError(`${to}: mailbox is full`);
    return { accepted: to };
  }

  /** At most five per second in the whole fleet. A task that must wait uses up no retry. */
  @TaskHandler(DeliverWebhook, { rateLimit: { max: 5, per: '1s' }, retryDelay: (retried) => 3_000 * 2 ** retried })
  async deliver(@Payload(DeliverWebhook, 'url') url: string): Promise<void> {
    await wait(50 + below(200));
    if (chance(40)) throw new Error(`${url} answered 503 Service Unavailable`);
  }
}
