import 'reflect-metadata';
import { isMainThread, type MessagePort, workerData } from 'node:worker_threads';
import { type DynamicModule, type INestApplicationContext, Module, type Type } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { InvalidOptionError } from '../../errors.js';
import { AsynqEvents } from '../../events/events.js';
import type { SingleHandlerEntry } from '../../server/index.js';
import { encodeJson, jsonCodec } from '../../task/codec.js';
import type { FromThread, SentTask, ThreadSetting, ToThread } from '../../threads/messages.js';
import { CONTEXT_METHODS } from '../../threads/messages.js';
import { seal, unseal } from '../../threads/sealed-error.js';
import { THREAD_PROGRAM } from '../../threads/thread.js';
import { HandlerExplorer } from '../discovery/handler.explorer.js';
import { HandlerMetadataAccessor } from '../discovery/handler.metadata-accessor.js';
import { Enhancers } from '../execution/enhancers.js';
import { TaskHandlerFactory } from '../execution/task-handler.factory.js';
import { noModuleInFile, noThreadHandler } from '../names/nest.messages.js';
import { type CallServer, ThreadTaskContext } from './thread-context.js';

/** What makes handlers of methods, without connection and server. */
@Module({
  imports: [DiscoveryModule],
  providers: [Enhancers, HandlerMetadataAccessor, HandlerExplorer, TaskHandlerFactory],
})
class ThreadModule {}

type Handlers = ReadonlyMap<string, SingleHandlerEntry>;

/** Runs the handlers of a module in this thread, until it is told to close. */
class ThreadProgram {
  private current: ThreadTaskContext | undefined;
  private readonly replies = new Map<number, { resolve: () => void; reject: (error: unknown) => void }>();
  private calls = 0;

  constructor(
    private readonly app: INestApplicationContext,
    private readonly handlers: Handlers,
    private readonly port: MessagePort,
  ) {}

  start(): void {
    this.port.on('message', (message: ToThread) => this.receive(message));
    this.send({ kind: 'ready' });
  }

  private receive(message: ToThread): void {
    switch (message.kind) {
      case 'run':
        return void this.run(message.pattern, message.task);
      case 'abort':
        return this.current?.abort(unseal(message.reason));
      case 'reply':
        return this.reply(message);
      case 'close':
        return void this.app.close().finally(() => process.exit(0));
    }
  }

  private async run(pattern: string, sent: SentTask): Promise<void> {
    const task = (this.current = new ThreadTaskContext(sent, this.callServer));
    try {
      const handler = this.handlers.get(pattern);
      if (!handler) throw new InvalidOptionError(noThreadHandler(pattern));
      const result = bytesOf(await handler.handle(task));
      task.notes.flush();
      this.send({ kind: 'done', result }, result ? [result.buffer as ArrayBuffer] : []);
    } catch (error) {
      task.notes.flush();
      this.send({ kind: 'failed', error: seal(error) });
    }
  }

  private readonly callServer: CallServer = (method, args) => {
    if (!CONTEXT_METHODS[method]) {
      this.send({ kind: 'call', call: 0, method, args });
      return Promise.resolve();
    }
    const call = ++this.calls;
    this.send({ kind: 'call', call, method, args });
    return new Promise((resolve, reject) => this.replies.set(call, { resolve, reject }));
  };

  private reply({ call, error }: Extract<ToThread, { kind: 'reply' }>): void {
    const waiting = this.replies.get(call);
    this.replies.delete(call);
    if (error) waiting?.reject(unseal(error));
    else waiting?.resolve();
  }

  private send(message: FromThread, transfer: readonly ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }
}

/** In memory of its own, which can be given away. */
function bytesOf(result: unknown): Uint8Array | undefined {
  const encoded = encodeJson(result);
  if (encoded === undefined) return undefined;
  return typeof encoded === 'string' ? new TextEncoder().encode(encoded) : new Uint8Array(encoded);
}

async function runThread(exported: object, setting: ThreadSetting, port: MessagePort): Promise<void> {
  const root = { module: ThreadModule, imports: [moduleIn(exported, setting)] };
  const app = await NestFactory.createApplicationContext(root, {
    logger: ['fatal', 'error', 'warn'],
    abortOnError: false,
  });
  const factory = app.get(TaskHandlerFactory);
  const { invalidPayload, globalEnhancers } = setting;
  const settings = { codec: jsonCodec, invalidPayload, globalEnhancers, events: new AsynqEvents() };
  const found = app.get(HandlerExplorer).explore();
  const entries = found
    .filter(({ metadata }) => metadata.thread)
    .map((handler) => factory.create(handler, settings) as SingleHandlerEntry);
  new ThreadProgram(app, new Map(entries.map((entry) => [entry.pattern, entry])), port).start();
}

/** @throws InvalidOptionError when it is not clear which one it is */
function moduleIn(exported: object, { module, export: name }: ThreadSetting): Type | DynamicModule {
  const all = exported as Record<string, unknown>;
  if (name !== undefined) {
    if (isModule(all[name])) return all[name];
    throw new InvalidOptionError(noModuleInFile(module, name));
  }
  // A file in CommonJS has all its exports as the default.
  const candidates = new Set([all['default'], ...Object.values(all)].filter(isModule));
  if (isModule(all['default']) || candidates.size === 1) return [...candidates][0]!;
  throw new InvalidOptionError(noModuleInFile(module));
}

const isModule = (value: unknown): value is Type | DynamicModule =>
  (typeof value === 'function' &&
    ['imports', 'providers', 'controllers'].some((key) => Reflect.hasMetadata(key, value))) ||
  (typeof value === 'object' && value !== null && typeof (value as Partial<DynamicModule>).module === 'function');

/** Whether this is a thread of a pool: modules of connections start no server in it. */
export const isPoolThread = (): boolean =>
  !isMainThread && typeof (workerData as Partial<ThreadSetting> | null)?.invalidPayload === 'string';

if (isPoolThread()) Object.assign(globalThis, { [THREAD_PROGRAM]: runThread });
