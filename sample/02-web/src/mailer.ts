import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';

/** Simulates a mail service: it takes a moment and stops when the signal fires. */
@Injectable()
export class Mailer {
  private readonly logger = new Logger('Mailer');

  async send(to: string, subject: string, signal: AbortSignal): Promise<string> {
    await wait(20, undefined, { signal });
    this.logger.log(`to ${to}: ${subject}`);
    return `sent to ${to}`;
  }
}
