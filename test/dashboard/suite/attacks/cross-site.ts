import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { PLATFORMS, startConsole } from '../../console.js';
import { target } from './attacker.js';

/* What a page of another site has the browser of an operator send. */

describe('requests that a page of another site has a browser send', () => {
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

    it('are told from those of its own page and of scripts', async () => {
      const own = `http://127.0.0.1:${port()}`;
      const headersOf: Record<string, string>[] = [
        {},
        { 'sec-fetch-site': 'same-origin' },
        { 'sec-fetch-site': 'none' },
        { origin: own },
        { origin: own, 'sec-fetch-site': 'same-origin' },
      ];
      for (const headers of headersOf)
        expect(await pause(headers), JSON.stringify(headers)).toMatchObject({ status: 204 });
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
        // What Fastify cannot parse it refuses by itself, with 415.
        expect([403, 415], `${method} ${path} ${type}`).toContain(status);
      }
      expect(await attacked.web.broker.hasQueue('default')).toBe(true);
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

    it('cannot read either where the application allows all origins, and the browser sends no Sec-Fetch-Site', async () => {
      const read = (origin: string) => as('view', 'GET', 'queues', undefined, { origin });
      expect(await read('http://evil.example')).toMatchObject({ status: 403 });
      expect(await read('null')).toMatchObject({ status: 403 });
      expect(await read(`http://127.0.0.1:${port()}`)).toMatchObject({ status: 200 });
    });

    it('cannot read either, but a link may lead here', async () => {
      const read = (mode: string) =>
        as('view', 'GET', 'queues', undefined, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode });
      expect(await read('no-cors')).toMatchObject({ status: 403 });
      expect(await read('navigate')).toMatchObject({ status: 200 });
    });
  });

  test('origins that are trusted stand for the own one behind a proxy that changes the host', async () => {
    const web = await startConsole({ access: 'destroy', trustedOrigins: ['https://ops.example.com'] });
    await web.client.enqueue('x');
    const pause = (origin: string, more = {}) =>
      web.api('POST', 'queues/default:pause', undefined, { origin, ...more });
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
    ])('the console answers to the name %s with %i', async (host, status) => {
      vi.stubEnv('NODE_ENV', 'development');
      const web = await startConsole({ trustedOrigins: ['https://ops.example.com'] }, { platform });
      onTestFinished(() => web.close());
      vi.unstubAllEnvs();
      expect((await web.raw('GET', '/asynq/api/queues', { host })).status).toBe(status);
      expect((await web.raw('GET', '/asynq', { host })).status).toBe(status === 200 ? 307 : status);
    });
  });

  test('a console with guards or access has any name', async () => {
    const web = await startConsole({ access: 'view' });
    onTestFinished(() => web.close());
    expect((await web.raw('GET', '/asynq/api/queues', { host: 'ops.example.com' })).status).toBe(200);
  });
});
