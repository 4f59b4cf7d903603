import { describe, expect, it, test } from 'vitest';
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
});
