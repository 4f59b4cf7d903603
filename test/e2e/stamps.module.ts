import { writeSync } from 'node:fs';
import { Injectable, Module } from '@nestjs/common';
import { Payload, TaskHandler } from '../../lib/index.js';

/** How often a thread dies around what it does. */
const DEATHS = Number(process.env['ASYNQ_STAMP_DEATHS'] ?? 0);

/** Says something at once, in whichever thread: also what is said just before it dies. */
function say(...words: readonly unknown[]): void {
  for (let left = Buffer.from(`${[Date.now(), ...words].join(' ')}\n`); left.length > 0;) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
    }
  }
}

/** For steps-process.ts: a handler in threads, some of which die. */
@Injectable()
export class Stamps {
  @TaskHandler('stamp', { thread: true })
  async stamp(@Payload() order: string) {
    if (Math.random() < DEATHS) await die(order);
    say('did', order, 'stamp');
    if (Math.random() < DEATHS) await die(order);
    return { stamp: order };
  }
}

async function die(order: string): Promise<never> {
  say('dies', order);
  if (Math.random() < 0.5) process.exit(3);
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
  return new Promise(() => undefined);
}

@Module({ providers: [Stamps] })
export class StampsModule {}
