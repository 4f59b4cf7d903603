import { networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { foreignSource } from '../../../../lib/dashboard/rest/cross-origin.js';
import { foreignPeer } from '../../../../lib/dashboard/rest/peer.js';
import { PLATFORMS, startConsole } from '../../console.js';
import { target } from './attacker.js';

/* Requests that a page of another site makes an operator's browser send. */

describe('requests that a page of another site makes a browser send', () => {
  describe.each(PLATFORMS)('on %s', (platform) => {
    const attacked = target(platform);
    const { as } = attacked;

    const port = () => new URL(attacked.web.origin).port;
    const pause = (headers: Record<string, string>) =>
      as('destroy', 'POST', 'queues/default:resume', undefined, headers);

    it.each([
      [{ 'sec-fetch-site': 'cross-site' }],
      [{ 'sec-fetch-site': 'same-site' }],
      [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
      [{ 'sec-fetch-site': 'bogus' }],
      [{ origin: 'https://evil.example' }],
      [{ origin: 'null' }],
      [{ origin: 'http://127.0.0.1' }],
      [{ origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' }],
      [{ origin: 'https://evil.example', 'x-http-method-override': 'GET' }],
      [{ origin: 'not an origin' }],
    ])('are refused: %j', async (headers) => {
      const { status, headers: replied } = await pause(headers);
      expect([status, replied['x-asynq-error']]).toEqual([403, 'CROSS_ORIGIN']);
    });

    it('are refused without a host, too', () => {
      expect(foreignSource({ origin: 'null' }, false, new Set())).toBe('null');
      expect(foreignSource({}, false, new Set())).toBeUndefined();
    });

    it('differ from those of its own page and of scripts', async () => {
      const own = `http://127.0.0.1:${port()}`;
      const headersOf: Record<string, string>[] = [
        {},
        { 'sec-fetch-site': 'same-origin' },
        { 'sec-fetch-site': 'none' },
        { origin: own },
        { origin: own, 'sec-fetch-site': 'same-origin' },
      ];
      for (const headers of headersOf) {
        const meant = { 'x-asynq-console': '1', ...headers };
        expect(await pause(meant), JSON.stringify(headers)).toMatchObject({ status: 204 });
      }
    });

    it.each([
      [{ cookie: 'session=1' }],
      [{ 'sec-fetch-site': 'same-origin' }],
      [{ referer: 'http://127.0.0.1/' }],
      [{ authorization: 'Basic YWxpY2U6c2VjcmV0' }],
      [{ authorization: 'negotiate x' }],
      [{ 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' }],
      [{ cookie: 'session=1', 'content-type': 'text/plain' }],
      [{ cookie: 'session=1', 'content-type': 'multipart/form-data; application/json' }],
    ])('must be shown to be meant where a browser may have sent them: %j', async (headers) => {
      const refused = await pause(headers);
      // Fastify itself refuses what it cannot parse.
      if (refused.status !== 415) {
        expect(refused).toMatchObject({ status: 403, headers: { 'x-asynq-error': 'CROSS_ORIGIN' } });
        expect(refused.text).toContain("curl: -H 'X-Asynq-Console: 1'");
      }
      const untyped = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'content-type'));
      expect(await pause({ ...untyped, 'x-asynq-console': '' })).toMatchObject({ status: 204 });
      const json = { ...headers, 'content-type': 'application/json; charset=utf-8', 'content-length': '2' };
      const path = '/asynq/api/queues/default:resume';
      expect(await attacked.web.raw('POST', path, { 'x-role': 'act', ...json }, '{}')).toMatchObject({ status: 204 });
      expect(await as('act', 'GET', 'queues', undefined, headers)).toMatchObject({ status: 200 });
    });

    it('of scripts need no such header', async () => {
      expect(await pause({ authorization: 'Bearer token' })).toMatchObject({ status: 204 });
      expect(await pause({ 'user-agent': 'curl/8.5.0' })).toMatchObject({ status: 204 });
    });

    it('are refused whatever the content type, body and method are', async () => {
      const tries = [
        ['POST', 'queues/default/tasks', 'application/json', '{"type":"x"}'],
        ['POST', 'queues/default/tasks', 'text/plain', '{"type":"x"}'],
        ['POST', 'queues/default/tasks', 'application/x-www-form-urlencoded', 'type=x'],
        ['POST', 'queues/default:pause', 'multipart/form-data; boundary=x', '--x--'],
        ['POST', 'queues/default/archived_tasks:run_all', 'application/x-www-form-urlencoded', '_method=DELETE'],
        ['DELETE', 'queues/default', 'text/plain', 'x'],
      ] as const;
      for (const [method, path, type, body] of tries) {
        const length = String(body.length);
        const headers = {
          'x-role': 'destroy',
          'content-type': type,
          'content-length': length,
          origin: 'https://evil.example',
        };
        const { status } = await attacked.web.raw(method, `/asynq/api/${path}`, headers, body);
        // Fastify itself refuses what it cannot parse, with 415.
        expect([403, 415], `${method} ${path} ${type}`).toContain(status);
      }
      expect(await attacked.web.broker.inspection.hasQueue('default')).toBe(true);
    });

    it.each([
      ['a longer name', (own: string) => `${own}.evil.example`],
      ['credentials', (own: string) => own.replace('://', '://evil.example@')],
      ['another scheme', (own: string) => own.replace('http:', 'https:').replace(/:\d+$/, '')],
      ['a port of its own', (own: string) => own.replace(/:\d+$/, ':1')],
      ['two origins', (own: string) => `${own}, https://evil.example`],
      ['spaces', (own: string) => `https://evil.example ${own}`],
    ])('are refused from an origin that looks alike: %s', async (_, alike) => {
      expect(await pause({ origin: alike(`http://127.0.0.1:${port()}`) })).toMatchObject({ status: 403 });
    });

    it('cannot read either if the application allows all origins and the browser sends no Sec-Fetch-Site', async () => {
      const read = (origin: string) => as('view', 'GET', 'queues', undefined, { origin });
      expect(await read('http://evil.example')).toMatchObject({ status: 403 });
      expect(await read('null')).toMatchObject({ status: 403 });
      expect(await read(`http://127.0.0.1:${port()}`)).toMatchObject({ status: 200 });
    });

    it('cannot read either, but links are allowed', async () => {
      const read = (mode: string) =>
        as('view', 'GET', 'queues', undefined, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode });
      expect(await read('no-cors')).toMatchObject({ status: 403 });
      expect(await read('navigate')).toMatchObject({ status: 200 });
    });
  });

  test('trusted origins are allowed behind a proxy that changes the host', async () => {
    const web = await startConsole({ access: 'destroy', trustedOrigins: ['https://ops.example.com'] });
    await web.client.enqueue('x');
    const pause = (origin: string, more = {}) =>
      web.api('POST', 'queues/default:pause', undefined, { origin, 'x-asynq-console': '1', ...more });
    expect(await pause('https://ops.example.com')).toMatchObject({ status: 204 });
    expect(await pause('https://ops.example.com', { 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 204 });
    expect(await pause('https://ops.example.com:8443')).toMatchObject({ status: 403 });
    expect(await pause('http://ops.example.com')).toMatchObject({ status: 403 });
    await web.close();
  });

  describe.each(PLATFORMS)('open for development, on %s', (platform) => {
    it.each([
      ['localhost:3000', 200],
      ['LOCALHOST', 200],
      ['app.localhost:3000', 200],
      ['127.0.0.1:3000', 200],
      ['192.168.1.20:3000', 200],
      ['[::1]:3000', 200],
      ['ops.example.com', 200],
      ['evil.example', 403],
      ['evil.example:3000', 403],
      ['127.0.0.1.evil.example', 403],
      ['localhost.evil.example:3000', 403],
      ['notlocalhost', 403],
      ['ops.example.com:81', 403],
      ['[::1].evil.example', 403],
    ])('the console replies to the host %s with %i', async (host, status) => {
      vi.stubEnv('NODE_ENV', 'development');
      const web = await startConsole({ trustedOrigins: ['https://ops.example.com'] }, { platform });
      onTestFinished(() => web.close());
      vi.unstubAllEnvs();
      expect((await web.raw('GET', '/asynq/api/queues', { host })).status).toBe(status);
      expect((await web.raw('GET', '/asynq', { host })).status).toBe(status === 200 ? 307 : status);
    });
  });

  describe.each(PLATFORMS)('open for development, on %s', (platform) => {
    const start = async (host: string) => {
      vi.stubEnv('NODE_ENV', 'development');
      const web = await startConsole({}, { platform, host });
      onTestFinished(() => web.close());
      vi.unstubAllEnvs();
      return web;
    };

    it.each(['x-forwarded-for', 'x-forwarded-proto', 'forwarded', 'via', 'x-real-ip'])(
      'the console refuses what comes through a proxy: %s',
      async (header) => {
        const web = await start('127.0.0.1');
        for (const path of ['/asynq/', '/asynq/assets/x.js', '/asynq/api/queues']) {
          const { status, text } = await web.raw('GET', path, { [header]: '127.0.0.1' });
          expect([status, text], path).toEqual([403, expect.stringContaining(`by a proxy (${header})`)]);
        }
        expect(await web.raw('GET', '/asynq/api/queues')).toMatchObject({ status: 200 });
      },
    );

    const outside = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

    it.skipIf(outside === undefined)('the console refuses other machines', async () => {
      const web = await start('0.0.0.0');
      const { port } = new URL(web.origin);
      // Connecting to an address of a network card also gives the peer that address.
      const from = (address: string) => fetch(`http://${address}:${port}/asynq/api/queues`);
      expect((await from('127.0.0.1')).status).toBe(200);
      const refused = await from(outside!);
      expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining(`not from ${outside}`)]);
    });
  });

  test.each([
    ['127.0.0.1', undefined],
    ['127.8.9.10', undefined],
    ['::1', undefined],
    ['::ffff:127.0.0.1', undefined],
    ['::ffff:192.0.2.1', 'from ::ffff:192.0.2.1'],
    ['10.0.0.1', 'from 10.0.0.1'],
    ['fe80::1', 'from fe80::1'],
    [undefined, 'through a socket without an address'],
  ])('a connection from %s is foreign: %s', (remoteAddress, foreign) => {
    const request = { method: 'GET', headers: {}, url: '/', originalUrl: '/' };
    expect(foreignPeer({ ...request, socket: { remoteAddress } })).toBe(foreign);
    expect(foreignPeer({ ...request, raw: { socket: { remoteAddress } } })).toBe(foreign);
  });

  test('a console with guards or access accepts any host', async () => {
    const web = await startConsole({ access: 'view' });
    onTestFinished(() => web.close());
    expect((await web.raw('GET', '/asynq/api/queues', { host: 'ops.example.com' })).status).toBe(200);
  });
});
