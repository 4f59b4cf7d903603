import 'reflect-metadata';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { AsynqClient } from 'nestjs-asynq';
import { AsynqDashboardModule, type PayloadDecoder } from 'nestjs-asynq/dashboard';
import { AppModule } from './app.js';

const none: PayloadDecoder = { name: 'none', decode: () => undefined };

/** The page and its API on one platform: statuses, and what became of one task. */
async function visit(platform: string): Promise<unknown[]> {
  // By a name the compiler cannot follow: the types of Express are not installed, and those of Fastify take long to check.
  const adapters = (await import(`@nestjs/platform-${platform.toLowerCase()}`)) as Record<
    string,
    new () => AbstractHttpAdapter
  >;
  const adapter = new adapters[`${platform}Adapter`]!();
  const imports = [AppModule.on('memory'), AsynqDashboardModule.forRoot({ access: 'destroy', decoders: [none] })];
  class Root {}
  const app = await NestFactory.create({ module: Root, imports }, adapter, { logger: ['error', 'warn'] });
  await app.get(AsynqClient).enqueue('nobody:handles:this', { a: 1 }, { taskId: 'a/b:c', processIn: '1h' });
  await app.listen(0, '127.0.0.1');
  const base = `${await app.getUrl()}/asynq`;
  const page = await fetch(`${base}/`);
  const html = await page.text();
  const script = /src="\.?\/?(assets\/[^"]+)"/.exec(html)?.[1];
  const task = `${base}/api/queues/default/tasks/${encodeURIComponent('a/b:c')}`;
  const headers = { 'content-type': 'application/json' };
  const moved = await fetch(`${task}:archive`, { method: 'POST', headers, body: '{"state":"scheduled"}' });
  const shown = (await (await fetch(task)).json()) as { state: string };
  const asset = await fetch(`${base}/${script}`);
  await asset.arrayBuffer();
  const unknown = await fetch(`${base}/api/queues/nobody`);
  await app.close();
  return [page.status, asset.status, moved.status, shown.state, unknown.status, unknown.headers.get('x-asynq-error')];
}

async function visitBoth(): Promise<void> {
  console.log(JSON.stringify([await visit('Express'), await visit('Fastify')]));
}

void visitBoth();
