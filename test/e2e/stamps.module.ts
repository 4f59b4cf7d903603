import { writeSync } from 'node:fs';
import { Injectable, Module } from '@nestjs/common';
import { Payload, TaskCtx, TaskHandler, type TaskContext } from '../../lib/index.js';

/** Of so many orders of a client one kills a thread before its stamp, and one after it. */
const ORDERS_PER_DEATH = Number(process.env['ASYNQ_STAMP_ORDERS_PER_DEATH'] ?? Infinity);

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
  async stamp(@Payload() order: string, @TaskCtx() { id, retried }: TaskContext) {
    say('stamps', id);
    const place = retried > 0 ? -1 : Number.parseInt(order.split('.')[1]!) % ORDERS_PER_DEATH;
    if (place === 5) await die(id);
    say('did', order, 'stamp');
    if (place === 9) await die(id);
    return { stamp: order };
  }
}

async function die(task: string): Promise<never> {
  say('dies', task);
  if (Math.random() < 0.5) process.exit(3);
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
  return new Promise(() => undefined);
}

@Module({ providers: [Stamps] })
export class StampsModule {}
