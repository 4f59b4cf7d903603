import { describe, expect, it } from 'vitest';
import { PLATFORMS } from '../../console.js';
import { target } from './attacker.js';

/* Bodies that are too large, of the wrong type, or meant to change the prototype of objects. */

describe('bodies, attacked', () => {
  describe.each(PLATFORMS)('on %s', (platform) => {
    const attacked = target(platform);
    const post = (type: string, text: string, path = 'queues/default/retry_tasks:batch_run') =>
      attacked.web.raw(
        'POST',
        `/asynq/api/${path}`,
        { 'x-role': 'destroy', 'content-type': type, 'content-length': String(Buffer.byteLength(text)) },
        text,
      );

    it.each(['application/x-www-form-urlencoded', 'text/plain'])('are no %s, which forms can send', async (type) => {
      const { status, text } = await post(type, '{"task_ids":["retry"]}');
      expect(status).toBe(415);
      if (type !== 'text/plain' || platform === 'express') expect(text).toContain('Content-Type: application/json');
      expect(await attacked.web.broker.inspection.getTask('default', 'retry')).toMatchObject({ state: 'retry' });
    });

    it.each([
      ['{"task_ids":["retry"],"taskids":[]}', 'unknown field of the body "taskids"; did you mean "task_ids"?'],
      ['{"task_ids":"retry"}', 'the body.task_ids must be of type array, not "retry"'],
      ['{"task_ids":[1]}', 'the body.task_ids[0] must be of type string, not 1'],
      ['[]', 'the body must be of type object, not an array'],
      ['{}', 'the body needs the field "task_ids"'],
    ])('that do not fit are refused: %s', async (text, message) => {
      const reply = await post('application/json', text);
      expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(message)]);
    });

    const worded = (code: string) => ({
      'x-asynq-error': code,
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });

    it('that are not JSON are refused', async () => {
      expect(await post('application/json', '{"task_ids":')).toMatchObject({
        status: 400,
        headers: worded('BAD_REQUEST'),
        text: expect.stringContaining('the body cannot be read as JSON'),
      });
      expect(await post('application/json', '')).toMatchObject({ status: 400, headers: worded('BAD_REQUEST') });
      const type = platform === 'express' ? 'application/json; charset=klingon' : 'text/plain';
      expect(await post(type, '{}')).toMatchObject({ status: 415, headers: worded('UNSUPPORTED_TYPE') });
    });

    it('that are too large are refused', async () => {
      const ids = JSON.stringify({ task_ids: ['x'.repeat(1_000_001)] });
      expect(await post('application/json', ids)).toMatchObject({ status: 413, headers: worded('TOO_LARGE') });
      const more = JSON.stringify({ task_ids: ['x'.repeat(2_000_001)] });
      expect(await post('application/json', more)).toMatchObject({ status: 413, headers: worded('TOO_LARGE') });
    });

    it.each(['PUT', 'PATCH', 'OPTIONS'])(
      'a method that the API does not have is refused in its words: %s',
      async (method) => {
        const put = (path: string) => attacked.web.raw(method, `/asynq/api/${path}`, { 'x-role': 'view' });
        const text = expect.stringContaining(`${method} is not for this path`);
        expect(await put('queues/default')).toMatchObject({ status: 404, headers: worded('NOT_FOUND'), text });
        expect(await put('nothing')).toMatchObject({ status: 404, headers: worded('NOT_FOUND') });
        expect((await attacked.web.raw(method, '/asynq/api/queues')).status).toBe(403);
      },
    );

    it.each(['__proto__', 'constructor', 'prototype'])('cannot change what all objects have: %s', async (name) => {
      const evil = `{"${name}":{"polluted":true},"task_ids":["nobody"]}`;
      expect((await post('application/json', evil)).status).toBe(400);
      const task = `{"type":"t","headers":{"${name}":"x"},"payload":{"${name}":{"polluted":true}}}`;
      const made = await post('application/json', task, `queues/${name}/tasks`);
      // Fastify refuses every body with `__proto__`.
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
});
