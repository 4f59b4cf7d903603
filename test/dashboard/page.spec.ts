import type { INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { PLATFORMS, startConsole, type TestConsole } from './console.js';

/* Serving the page's files, built or not. */

vi.mock('../../lib/dashboard/web-assets.js', () => ({
  webAsset: (name: string) =>
    ({
      'index.html': { body: Buffer.from('<!doctype html>'), type: 'text/html; charset=utf-8', etag: '"page"' },
      'assets/licenses.txt': { body: Buffer.from('preact'), type: 'text/plain; charset=utf-8', etag: '"txt"' },
      'assets/app-1.js': { body: Buffer.from('export {}'), type: 'text/javascript; charset=utf-8', etag: '"app"' },
    })[name],
}));

describe.each(PLATFORMS)('the page on %s', (platform) => {
  let web: TestConsole;
  beforeAll(async () => {
    web = await startConsole({ access: 'view' }, { platform });
  });
  afterAll(() => web.close());

  it('has a policy that allows nothing inline and nothing from other hosts', async () => {
    const { status, text, headers } = await web.raw('GET', '/asynq/');
    expect([status, text]).toEqual([200, '<!doctype html>']);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      etag: '"page"',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': expect.stringMatching(/camera=\(\).*geolocation=\(\)/),
    });
  });

  it('has cacheable files, whose names change with their content', async () => {
    const file = await web.raw('GET', '/asynq/assets/app-1.js');
    expect(file).toMatchObject({ status: 200, text: 'export {}' });
    expect(file.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'content-length': '9',
      etag: '"app"',
      'cache-control': 'private, max-age=31536000, immutable',
    });
    expect((await web.raw('GET', '/asynq/assets/index.html')).status).toBe(404);
  });

  it('has the licences of its software, under a fixed name', async () => {
    const file = await web.raw('GET', '/asynq/assets/licenses.txt');
    expect(file).toMatchObject({
      status: 200,
      text: 'preact',
      headers: { 'cache-control': 'no-cache', etag: '"txt"' },
    });
  });

  it.each([
    ['gzip, deflate, br', true],
    ['br;q=1.0, gzip;q=0.8', true],
    ['gzip;q=0, br', false],
    ['br', false],
  ])('has files that are compressed for who accepts %s: %s', async (accepted, gzip) => {
    const { status, headers } = await web.raw('GET', '/asynq/assets/app-1.js', { 'accept-encoding': accepted });
    expect([status, headers['content-encoding']]).toEqual([200, gzip ? 'gzip' : undefined]);
    expect(headers).toMatchObject({ vary: 'Accept-Encoding', etag: gzip ? '"app-gzip"' : '"app"' });
    const file = await fetch(`${web.origin}/asynq/assets/app-1.js`, { headers: { 'accept-encoding': accepted } });
    expect(await file.text()).toBe('export {}');
  });

  it('is not sent again to a client that has it', async () => {
    const page = await web.raw('GET', '/asynq/', { 'if-none-match': '"page"' });
    expect(page).toMatchObject({ status: 304, text: '', headers: { etag: '"page"', 'cache-control': 'no-cache' } });
    expect((await web.raw('GET', '/asynq/', { 'if-none-match': '"old"' })).status).toBe(200);
  });

  it('replies to HEAD without a body', async () => {
    const { status, text, headers } = await web.raw('HEAD', '/asynq/');
    expect([status, text, headers['content-length']]).toEqual([200, '', '15']);
    expect((await web.raw('HEAD', '/asynq/api/queues')).status).toBe(200);
  });

  it('refuses its files to pages of other sites', async () => {
    const file = await web.raw('GET', '/asynq/assets/app-1.js', { 'sec-fetch-site': 'cross-site' });
    expect(file.status).toBe(403);
    expect((await web.raw('GET', '/asynq/', { 'sec-fetch-site': 'cross-site' })).status).toBe(200);
  });

  it('redirects by a relative address, and keeps the query', async () => {
    expect(await web.raw('GET', '/asynq?x=1')).toMatchObject({ status: 307, headers: { location: './asynq/?x=1' } });
  });
});

it('keeps its address with strict routing in Express', async () => {
  const prepare = (app: INestApplication) => void (app as NestExpressApplication).set('strict routing', true);
  const web = await startConsole({ access: 'view' }, { platform: 'express', prepare });
  onTestFinished(() => web.close());
  expect((await web.raw('GET', '/asynq')).headers).toMatchObject({ location: './asynq/' });
  expect(await web.raw('GET', '/asynq/')).toMatchObject({ status: 200, text: '<!doctype html>' });
  expect((await web.raw('GET', '/asynq/assets/app-1.js')).status).toBe(200);
});
