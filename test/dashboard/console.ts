import { request as httpRequest } from 'node:http';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { ASYNQ_BROKER, AsynqClient, AsynqModule, type AsynqModuleOptions, type Broker } from 'nestjs-asynq';
import { AsynqDashboardModule, type AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import { InMemoryBroker } from 'nestjs-asynq/testing';
import { quiet } from '../nest/support.js';

export const PLATFORMS = ['express', 'fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** An application with the console, listening. */
export class TestConsole {
  private constructor(
    readonly app: INestApplication,
    readonly origin: string,
    readonly base: string,
  ) {}

  static async start(app: INestApplication, base = '/asynq', host = '127.0.0.1'): Promise<TestConsole> {
    await app.listen(0, host);
    return new TestConsole(app, await app.getUrl(), base);
  }

  get broker(): Broker {
    return this.app.get<Broker>(ASYNQ_BROKER, { strict: false });
  }

  get client(): AsynqClient {
    return this.app.get(AsynqClient, { strict: false });
  }

  get adapter(): string {
    return this.app.get(HttpAdapterHost).httpAdapter.getType();
  }

  /** The path as it is, with its dots, which `fetch` would normalize. */
  raw(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(this.origin);
      const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(parts).toString() }),
        );
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  api(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
    if (text !== undefined) type['content-length'] = String(Buffer.byteLength(text));
    return this.raw(method, `${this.base}/api/${path}`, { ...type, ...headers }, text);
  }

  /** The reply to a GET that must succeed. */
  async get<T = never>(path: string, headers?: Record<string, string>): Promise<T> {
    const { status, text } = await this.api('GET', path, undefined, headers);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

export interface ConsoleOptions {
  readonly platform?: Platform;
  /** Options of Fastify itself. */
  readonly fastify?: ConstructorParameters<typeof FastifyAdapter>[0];
  readonly asynq?: Partial<AsynqModuleOptions>;
  readonly metadata?: ModuleMetadata;
  /** Called before it listens. */
  readonly prepare?: (app: INestApplication) => void;
  readonly override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
  readonly base?: string;
  /** The host it listens on. Default: this machine only. */
  readonly host?: string;
}

/** An application with one console; on an InMemoryBroker, unless a connection is given. */
export async function startConsole(
  dashboard: AsynqDashboardOptions = { access: 'destroy' },
  options: ConsoleOptions = {},
): Promise<TestConsole> {
  const { asynq, metadata = {}, override = (builder) => builder } = options;
  const imports = [
    AsynqModule.forRoot({ connection: { host: 'localhost' }, server: false, scheduler: false, ...asynq }),
    AsynqDashboardModule.forRoot(dashboard),
    ...(metadata.imports ?? []),
  ];
  let builder = Test.createTestingModule({ ...metadata, imports }).setLogger(quiet);
  if (!asynq?.connection) builder = builder.overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker);
  const compiled = await override(builder).compile();
  const adapter = options.platform === 'fastify' ? new FastifyAdapter(options.fastify) : new ExpressAdapter();
  const app = compiled.createNestApplication<INestApplication>(adapter, { logger: quiet });
  options.prepare?.(app);
  return TestConsole.start(app, options.base, options.host);
}
