import { connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { Controller, type INestApplication, Post } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { arrangeEveryState } from '../../../support/every-state.js';
import { PLATFORMS, startConsole } from '../../console.js';

/* Bodies without a length, or with a wrong one, and body errors beside the console. */

const json = { 'content-type': 'application/json' };
const tooMany = JSON.stringify({ task_ids: ['x'.repeat(1_000_001)] });

@Controller('other')
class OtherController {
  @Post()
  take(): string {
    return 'taken';
  }
}

interface Http2Answer {
  readonly status: number;
  readonly text: string;
}

/** A request over HTTP/2, its body without a content length. */
async function send2(origin: string, headers: Record<string, string>, body?: string): Promise<Http2Answer> {
  const session = connect(origin);
  try {
    return await new Promise<Http2Answer>((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request(headers, { endStream: body === undefined });
      const parts: Buffer[] = [];
      let status = 0;
      stream.on('response', (reply) => (status = Number(reply[':status'])));
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => resolve({ status, text: Buffer.concat(parts).toString() }));
      stream.on('error', reject);
      if (body !== undefined) stream.end(body);
    });
  } finally {
    session.close();
  }
}

describe('lengths of bodies, attacked', () => {
  describe.each(PLATFORMS)('on %s', (platform) => {
    const start = async () => {
      const prepare = (app: INestApplication): void => {
        app.setGlobalPrefix('v1/:tenant');
        if (platform === 'express') (app as NestExpressApplication).useBodyParser('json', { limit: '10mb' });
      };
      const metadata = { controllers: [OtherController] };
      const web = await startConsole(
        { access: 'destroy' },
        { platform, prepare, metadata, fastify: { bodyLimit: 10_000_000 } },
      );
      onTestFinished(() => web.close());
      await arrangeEveryState(web.broker);
      return web;
    };
    const api = '/v1/acme/asynq/api';
    const run = `${api}/queues/default/retry_tasks:batch_run`;

    it('a chunked body is measured', async () => {
      const web = await start();
      const chunked = { ...json, 'transfer-encoding': 'chunked' };
      expect(await web.raw('POST', run, chunked, tooMany)).toMatchObject({ status: 413 });
      expect(await web.raw('POST', `${api}/queues/default:pause`, chunked, tooMany)).toMatchObject({ status: 413 });
      const few = JSON.stringify({ task_ids: ['retry'] });
      expect(await web.raw('POST', run, chunked, few)).toMatchObject({ status: 200 });
    });

    it('a compressed body is measured after decompression', async () => {
      const web = await start();
      const reply = await fetch(`${web.origin}${run}`, {
        method: 'POST',
        headers: { ...json, 'content-encoding': 'gzip' },
        body: gzipSync(tooMany),
      });
      // Fastify does not decompress.
      expect(reply.status).toBe(platform === 'express' ? 413 : 400);
      expect(reply.headers.get('x-asynq-error')).toBe(platform === 'express' ? 'TOO_LARGE' : 'BAD_REQUEST');
    });

    it('the console words its own body errors below any prefix, and no others', async () => {
      const web = await start();
      const bad = (path: string) => web.raw('POST', path, { ...json, 'content-length': '1' }, '{');
      expect((await bad(`${api}/queues/default/tasks`)).headers['x-asynq-error']).toBe('BAD_REQUEST');
      const other = await bad('/v1/acme/other');
      expect([other.status, other.headers['x-asynq-error']]).toEqual([400, undefined]);
      expect(JSON.parse(other.text)).toMatchObject({ statusCode: 400 });
      expect((await web.raw('PUT', '/v1/acme/other')).headers['x-asynq-error']).toBeUndefined();
      expect((await web.raw('POST', '/v1/acme/other', { ...json, 'content-length': '2' }, '{}')).status).toBe(201);
    });
  });

  it('a body over HTTP/2, without a length, is read', async () => {
    const web = await startConsole({ access: 'destroy' }, { platform: 'fastify', fastify: { http2: true } });
    onTestFinished(() => web.close());
    await arrangeEveryState(web.broker);
    const ask = (method: string, path: string, headers: Record<string, string>, body?: string) =>
      send2(web.origin, { ':method': method, ':path': `/asynq/api/${path}`, ...headers }, body);
    const state = '{"state":"archived"}';
    const pending = 'queues/default/tasks/pending';
    expect(await ask('DELETE', pending, json, state)).toMatchObject({ status: 409 });
    expect(await ask('DELETE', pending, {}, state)).toMatchObject({ status: 415 });
    expect(await ask('DELETE', pending, json, '{"state":')).toMatchObject({ status: 400 });
    expect(await ask('POST', 'queues/default/retry_tasks:batch_run', json, tooMany)).toMatchObject({ status: 413 });
    expect(await web.broker.inspection.getTask('default', 'pending')).toMatchObject({ state: 'pending' });
    expect(await ask('POST', 'queues/default:pause', {}, '')).toMatchObject({ status: 204 });
    expect(await ask('DELETE', pending, {}, '')).toMatchObject({ status: 204 });
    expect(await ask('DELETE', 'queues/default/tasks/archived', {})).toMatchObject({ status: 204 });
  });
});
