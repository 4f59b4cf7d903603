import 'reflect-metadata';
import { Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type pg from 'pg';
import { AsynqClient, AsynqModule, TaskHandler } from '../../../dist/index.js';
import { AsynqOutbox, AsynqOutboxModule, outboxSchema, pgOutbox } from '../../../dist/outbox/index.js';
import type { Handle, Payload } from '../system.js';
import type { OutboxSystem } from './outbox-system.js';

let current: Handle = () => undefined;

@Injectable()
class Tasks {
  @TaskHandler('bench')
  run(payload: Payload): Promise<void> | void {
    return current(payload);
  }
}

/** A process that writes and relays rows, and one that works, in one. */
export async function ours(pool: pg.Pool, port: number): Promise<OutboxSystem> {
  for (const statement of outboxSchema('postgres')) await pool.query(statement);
  const connection = { host: '127.0.0.1', port };
  const start = (module: Type) => NestFactory.createApplicationContext(module, { logger: ['warn', 'error'] });
  const producer = (relay: boolean): Type => {
    @Module({
      imports: [
        AsynqModule.forRoot({ connection, server: false }),
        AsynqOutboxModule.forRoot({ store: pgOutbox(pool), relay }),
      ],
    })
    class Producer {}
    return Producer;
  };
  @Module({ imports: [AsynqModule.forRoot({ connection, server: { concurrency: 100 } })], providers: [Tasks] })
  class Worker {}
  const writer = await start(producer(false));
  const [client, outbox] = [writer.get(AsynqClient), writer.get(AsynqOutbox)];
  const open = [writer];
  return {
    enqueue: (tx, payloads) =>
      outbox.within(tx, () => client.enqueueMany(payloads.map((payload) => ({ type: 'bench', payload })))),
    relay: () => outbox.drain(),
    work: async (_concurrency, handle) => {
      current = handle;
      open.push(await start(Worker), await start(producer(true)));
    },
    close: async () => {
      for (const app of open.reverse()) await app.close();
    },
  };
}
