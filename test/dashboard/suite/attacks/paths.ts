import { describe, expect, it } from 'vitest';
import { PLATFORMS } from '../../console.js';
import { target, XSS } from './attacker.js';

/* Paths meant to lead elsewhere. */

describe('paths, attacked', () => {
  describe.each(PLATFORMS)('on %s', (platform) => {
    const attacked = target(platform);
    const { as } = attacked;

    it.each([
      '/asynq/assets/..%2f..%2fpackage.json',
      '/asynq/assets/%2e%2e/%2e%2e/package.json',
      '/asynq/assets/../../package.json',
      '/asynq/assets/....//package.json',
      '/asynq/assets/%00',
      '/asynq/assets/',
      '/asynq/assets/index.html%00.js',
      '/asynq/api/queues/%2e%2e/tasks/x',
      '/asynq/api/queues/../config',
      '/asynq/api/../../../etc/passwd',
      '/asynq/api//queues',
      '/asynq/api/queues/',
      '/asynq/api/queues//archived_tasks',
      '/asynq/api/queues/%00',
      '/asynq/api/queues/%zz',
      '/asynq/api/queues/%c0%ae',
      '/asynq/api/queues/default/tasks/%2F..%2F',
      '/asynq/api/queues/default%2Farchived_tasks',
      '/asynq/api/toString',
      '/asynq/api/queues/default/__proto___tasks',
      '/asynq/api/%71ueues%2Fdefault',
    ])('that lead nowhere: %s', async (path) => {
      const { status, text } = await attacked.web.raw('GET', path, { 'x-role': 'destroy' });
      expect([400, 404]).toContain(status);
      expect(text).not.toMatch(/node_modules|\.ts:|\.js:|"devDependencies"/);
    });

    it('may include the host, as a proxy may send them', async () => {
      const ask = (path: string) => attacked.web.raw('GET', `http://console.example${path}`, { 'x-role': 'view' });
      expect(await ask('/asynq/api/queues/default?a=/b')).toMatchObject({ status: 200 });
      expect(await ask('/asynq/')).toMatchObject({ status: 200 });
    });

    it('cannot smuggle a header into a reply', async () => {
      const reply = await as('view', 'GET', `queues/${encodeURIComponent('x\r\nSet-Cookie: a=b')}`);
      expect(reply).toMatchObject({ status: 404, text: expect.stringContaining('x\\r\\nSet-Cookie') });
      expect(reply.headers['set-cookie']).toBeUndefined();
    });

    it('return 404 for other methods', async () => {
      expect((await attacked.web.raw('PUT', '/asynq/api/queues', { 'x-role': 'destroy' })).status).toBe(404);
      expect((await attacked.web.raw('POST', '/asynq/', { 'x-role': 'destroy' })).status).toBe(404);
    });

    it('sends text that would be a script in HTML only as JSON or plain text', async () => {
      const made = await as('act', 'POST', `queues/${encodeURIComponent(XSS)}/tasks`, {
        type: XSS,
        payload: { [XSS]: XSS },
        task_id: XSS,
        headers: { [XSS]: XSS },
        group: XSS,
      });
      expect(made.status).toBe(201);
      const q = encodeURIComponent(XSS);
      const group = `queues/${q}/groups/${q}/aggregating_tasks`;
      for (const path of ['queues', 'live', `queues/${q}`, group, `queues/${q}/tasks/${q}`, 'queue_stats']) {
        const { status, headers, text } = await as('view', 'GET', path);
        expect([path, status, headers['content-type']]).toEqual([path, 200, 'application/json; charset=utf-8']);
        expect(headers).toMatchObject({
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
          'referrer-policy': 'no-referrer',
          'cross-origin-resource-policy': 'same-origin',
          'cache-control': 'no-store',
        });
        expect(text).toContain(JSON.stringify(XSS).slice(1, -1));
      }
      const error = await as('view', 'GET', `queues/${q}/tasks/${encodeURIComponent(`${XSS}2`)}`);
      expect(error).toMatchObject({ status: 404, headers: { 'content-type': 'text/plain; charset=utf-8' } });
      expect(error.headers).toMatchObject({ 'x-content-type-options': 'nosniff' });
    });
  });
});
