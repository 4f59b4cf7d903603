import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { DashboardRequest } from 'nestjs-asynq/dashboard';
import { arrangeEveryState } from '../../support/every-state.js';
import { PLATFORMS, startConsole, type TestConsole } from '../console.js';

/* What an attacker tries. The role comes from a header here, as it would come from a session elsewhere. */

describe('what an attacker tries', () => {
  const ROLES = ['view', 'act', 'destroy'] as const;
  const access = ({ headers }: DashboardRequest) =>
    headers['x-role'] === 'broken' ? ('admin' as 'view') : ROLES.find((role) => role === headers['x-role']);

  /** Would be a script if anything took it for HTML. */
  const XSS = `"><script>alert(1)</script>`;
  const HOST = '127.0.0.1';

  describe.each(PLATFORMS)('on %s', (platform) => {
    let web: TestConsole;
    const as = (role: string, method: string, path: string, body?: unknown, headers = {}) =>
      web.api(method, path, body, { 'x-role': role, ...headers });

    beforeAll(async () => {
      web = await startConsole({ access }, { platform });
      await arrangeEveryState(web.broker);
    });
    afterAll(() => web.close());

    describe('access', () => {
      it.each(['/asynq/', '/asynq/assets/x.js', '/asynq/api/queues', '/asynq/api/nothing'])(
        'refuses %s to nobody',
        async (path) => {
          const { status, text } = await web.raw('GET', path);
          expect([status, text]).toEqual([403, expect.stringContaining('you have no access to this dashboard')]);
        },
      );

      it.each([
        ['view', 'POST', 'queues/default:pause'],
        ['view', 'POST', 'queues/default/archived_tasks/archived:run'],
        ['view', 'POST', 'queues/default/tasks'],
        ['view', 'DELETE', 'queues/default'],
        ['act', 'DELETE', 'queues/default?force=true'],
        ['act', 'DELETE', 'queues/default/archived_tasks/archived'],
        ['act', 'DELETE', 'queues/default/tasks/archived'],
        ['act', 'DELETE', 'queues/default/archived_tasks:delete_all'],
        ['act', 'POST', 'queues/default/archived_tasks:batch_delete'],
        ['act', 'DELETE', 'queues/default/groups/g/aggregating_tasks:delete_all'],
      ])('the role %s may not %s %s', async (role, method, path) => {
        const { status, headers } = await as(role, method, path);
        expect([status, headers['x-asynq-error']]).toEqual([403, 'FORBIDDEN']);
        expect(await web.broker.getTask('default', 'archived')).toMatchObject({ state: 'archived' });
      });

      it('takes a cancellation that deletes for a deletion', async () => {
        const cancel = (outcome: string) => as('act', 'POST', 'queues/default/tasks/active:cancel', { outcome });
        expect(await cancel('delete')).toMatchObject({ status: 403 });
        expect(await cancel('archive')).toMatchObject({ status: 204 });
      });

      it('is closed when the function that should say so is wrong', async () => {
        const { status, text } = await as('broken', 'GET', 'queues');
        expect([status, text]).toEqual([500, "this did not work; the application's log says why\n"]);
      });

      it('offers only what the role may do', async () => {
        const actions = async (role: string) =>
          JSON.parse((await as(role, 'GET', 'queues/default/tasks/archived')).text).actions as string[];
        expect(await actions('view')).toEqual([]);
        expect(await actions('act')).toEqual(['run', 'reschedule', 'edit', 'clone']);
        expect(await actions('destroy')).toEqual(['run', 'delete', 'reschedule', 'edit', 'clone']);
      });
    });

    describe('requests that a page of another site has a browser send', () => {
      const port = () => new URL(web.origin).port;
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
        const own = `http://${HOST}:${port()}`;
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

    describe('bodies', () => {
      const post = (type: string, text: string, path = 'queues/default/retry_tasks:batch_run') =>
        web.raw(
          'POST',
          `/asynq/api/${path}`,
          { 'x-role': 'destroy', 'content-type': type, 'content-length': String(Buffer.byteLength(text)) },
          text,
        );

      it.each(['application/x-www-form-urlencoded', 'text/plain'])('are no %s, which forms can send', async (type) => {
        const { status, text } = await post(type, '{"task_ids":["retry"]}');
        expect(status).toBe(415);
        if (type !== 'text/plain' || platform === 'express') expect(text).toContain('Content-Type: application/json');
        expect(await web.broker.getTask('default', 'retry')).toMatchObject({ state: 'retry' });
      });

      it.each([
        ['{"task_ids":["retry"],"taskids":[]}', 'unknown field of the body "taskids"; did you mean "task_ids"?'],
        ['{"task_ids":"retry"}', 'the body.task_ids must be of type array, not "retry"'],
        ['{"task_ids":[1]}', 'the body.task_ids[0] must be of type string, not 1'],
        ['[]', 'the body must be of type object, not an array'],
        ['{}', 'the body needs the field "task_ids"'],
      ])('that do not fit are refused: %s', async (text, message) => {
        const answer = await post('application/json', text);
        expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(message)]);
      });

      it('that are no JSON are refused', async () => {
        expect(await post('application/json', '{"task_ids":')).toMatchObject({ status: 400 });
        expect(await post('application/json', '')).toMatchObject({ status: 400 });
      });

      it('that are too large are refused', async () => {
        const ids = JSON.stringify({ task_ids: ['x'.repeat(1_000_001)] });
        expect(await post('application/json', ids)).toMatchObject({ status: 413 });
      });

      it.each(['__proto__', 'constructor', 'prototype'])('cannot change what all objects have: %s', async (name) => {
        const evil = `{"${name}":{"polluted":true},"task_ids":["nobody"]}`;
        expect((await post('application/json', evil)).status).toBe(400);
        const task = `{"type":"t","headers":{"${name}":"x"},"payload":{"${name}":{"polluted":true}}}`;
        const made = await post('application/json', task, `queues/${name}/tasks`);
        // Fastify takes no body with __proto__ in it at all.
        if (platform === 'fastify' && made.status === 400) expect(name).not.toBe('prototype');
        else {
          expect(made.status).toBe(201);
          const shown = JSON.parse(made.text) as { headers: object; queue: string; payload: string };
          expect(Object.getOwnPropertyDescriptor(shown.headers, name)?.value).toBe('x');
          expect(shown).toMatchObject({ queue: name, payload: `{"${name}":{"polluted":true}}` });
        }
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      });
    });

    describe('paths', () => {
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
        const { status, text } = await web.raw('GET', path, { 'x-role': 'destroy' });
        expect([400, 404]).toContain(status);
        expect(text).not.toMatch(/node_modules|\.ts:|\.js:|"devDependencies"/);
      });

      it('cannot smuggle a header into a reply', async () => {
        const answer = await as('view', 'GET', `queues/${encodeURIComponent('x\r\nSet-Cookie: a=b')}`);
        expect(answer).toMatchObject({ status: 404, text: expect.stringContaining('x\\r\\nSet-Cookie') });
        expect(answer.headers['set-cookie']).toBeUndefined();
      });

      it('answer other methods with 404', async () => {
        expect((await web.raw('PUT', '/asynq/api/queues', { 'x-role': 'destroy' })).status).toBe(404);
        expect((await web.raw('POST', '/asynq/', { 'x-role': 'destroy' })).status).toBe(404);
      });
    });

    it('gives text that would be a script in HTML only as JSON or plain text, and says so', async () => {
      const made = await as('act', 'POST', `queues/${encodeURIComponent(XSS)}/tasks`, {
        ...{ type: XSS, payload: { [XSS]: XSS }, task_id: XSS, headers: { [XSS]: XSS }, group: XSS },
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

  test('in read-only mode only looking is left, whatever the role', async () => {
    const web = await startConsole({ access: 'destroy', readOnly: true });
    await arrangeEveryState(web.broker);
    for (const [method, path] of [
      ['POST', 'queues/default:pause'],
      ['DELETE', 'queues/default'],
      ['POST', 'nothing'],
    ] as const) {
      const { status, text, headers } = await web.api(method, path);
      expect([status, headers['x-asynq-error']]).toEqual([405, 'READ_ONLY']);
      expect(text).toBe(`API Server is running in read-only mode: ${method} request is not allowed\n`);
    }
    expect(await web.get('config')).toMatchObject({ read_only: true });
    expect(await web.get('queues/default/tasks/archived')).toMatchObject({ actions: [] });
    await web.close();
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
