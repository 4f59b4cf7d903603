import type { ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ASYNQ_BROKER, AsynqClient, AsynqModule, type AsynqEventName, type AsynqModuleOptions } from 'nestjs-asynq';
import { AsynqTester, InMemoryBroker } from 'nestjs-asynq/testing';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { ConnectionRegistry } from '../../lib/nest/connection/connection.registry.js';

/** One row of docs/troubleshooting.md. */
export interface Mistake {
  /** As somebody would write it, in Markdown. */
  readonly wrong: string;
  /** What the library says. */
  readonly says: () => unknown;
}

export const mistake = (wrong: string, says: Mistake['says']): Mistake => ({ wrong, says });

/** What is thrown, now or later. */
export async function refusal(make: () => unknown): Promise<string> {
  try {
    await make();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('this is no mistake any more');
}

const NOTHING = { log() {}, error() {}, warn() {}, debug() {}, verbose() {}, fatal() {} };

/** What the client says to a call. */
export const call = (make: (client: AsynqClient) => unknown, options = {}): Promise<string> =>
  refusal(() => make(new AsynqClient(new MemoryBroker(new ManualClock()), options)));

const compile = (metadata: ModuleMetadata) => Test.createTestingModule(metadata).setLogger(NOTHING);

/** What stops an application. */
export async function boot(
  options: Partial<AsynqModuleOptions> | undefined,
  metadata: ModuleMetadata = {},
): Promise<string> {
  return refusal(async () => {
    const modules = options ? [AsynqModule.forRoot({ connection: 'memory', ...options })] : [];
    const app = await compile({ ...metadata, imports: [...modules, ...(metadata.imports ?? [])] }).compile();
    try {
      await app.init();
    } finally {
      await app.close().catch(() => undefined);
    }
  });
}

/** The error that a task is stored with. */
export async function failure(
  type: string,
  payload: unknown,
  metadata: ModuleMetadata,
  options: Partial<AsynqModuleOptions> = {},
): Promise<string> {
  const imports = [AsynqModule.forRoot({ connection: 'memory', ...options })];
  const app = await compile({ ...metadata, imports })
    .overrideProvider(ASYNQ_BROKER)
    .useClass(InMemoryBroker)
    .compile();
  try {
    const tasks = AsynqTester.from(app);
    await tasks.work(type, payload);
    return [...tasks.enqueued(type), ...tasks.archived(type)][0]!.lastErr;
  } finally {
    await app.close();
  }
}

export interface Started {
  readonly client: AsynqClient;
  readonly broker: MemoryBroker;
}

/** What an application logs about an event, some seconds after its start. */
export async function logged(
  event: AsynqEventName,
  metadata: ModuleMetadata,
  options: Partial<AsynqModuleOptions> = {},
  then: (started: Started) => unknown = () => undefined,
): Promise<string> {
  const clock = new ManualClock(new Date('2026-01-01'));
  const broker = new MemoryBroker(clock);
  const warnings: string[] = [];
  const record = (message: unknown): void => void warnings.push(String(message));
  const imports = [AsynqModule.forRoot({ connection: 'memory', ...options }), ...(metadata.imports ?? [])];
  const app = await Test.createTestingModule({ ...metadata, imports })
    .setLogger({ ...NOTHING, error: record, warn: record, log: record })
    .overrideProvider(ASYNQ_BROKER)
    .useValue(broker)
    .compile();
  try {
    const { events } = app.get(ConnectionRegistry, { strict: false }).all()[0]!;
    let before = 0;
    const heard = new Promise<void>((resolve, reject) => {
      events.on(event, () => resolve());
      events.on('loopFailed', ({ error }) => reject(error as Error));
    });
    events.on(event, () => void (before = warnings.length));
    await app.init();
    await then({ client: app.get(AsynqClient), broker });
    clock.advance(5_000);
    await heard;
    return warnings[before - 1]!;
  } finally {
    await app.close();
  }
}
