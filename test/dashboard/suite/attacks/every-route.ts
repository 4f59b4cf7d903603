import { describe, expect, it } from 'vitest';
import { mayDo } from '../../../../lib/dashboard/permissions.js';
import { roleFor, type Route } from '../../../../lib/dashboard/rest/route.js';
import type { Schema } from '../../../../lib/dashboard/rest/schema.js';
import { routes } from '../../../../lib/dashboard/rest/table.js';
import { PLATFORMS } from '../../console.js';
import { target } from './attacker.js';

/* Attempts against every route, and every field of every body. */

/** For an existing task, so that nothing else is the reason for a refusal. */
const realPathOf = ({ path }: Route): string =>
  path.replace('{queue}', 'default').replace('{id}', 'scheduled').replace('{group}', 'g').replace('{entry}', 'nobody');
const pathOf = ({ path }: Route, name = 'nobody'): string => path.replaceAll(/\{\w+\}/g, encodeURIComponent(name));
const writing = routes.filter(({ method }) => method !== 'GET');
const NAMES = [
  '.',
  '..',
  '__proto__',
  'constructor',
  '\u0000',
  ' ',
  '\u202e',
  ';',
  '%2e%2e',
  ':',
  ':run',
  '\n',
  '😀',
  'x'.repeat(3_000),
];
const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  0.5,
  1e308,
  -1e308,
  2 ** 53,
  1e21,
  '',
  ' ',
  '\0',
  '\ud800',
  '../..',
  '__proto__',
  '1h',
  '2030-01-31T12:00:00Z',
  '9999-12-31T23:59:59Z',
  '0001-01-01T00:00:00Z',
  'x'.repeat(50_000),
  [],
  {},
  [[]],
  [null],
  { a: { b: [1] } },
  { constructor: 1 },
];
/** 5,000 levels: JSON.parse accepts them, JSON.stringify may not. */
const DEEP = `${'['.repeat(40_000)}${']'.repeat(40_000)}`;

const fieldsOf = ({ body }: Route): string[] => Object.keys((body as Schema | undefined)?.properties ?? {});

describe.each(PLATFORMS)('every route, attacked, on %s', (platform) => {
  const attacked = target(platform);
  const { as } = attacked;

  it('is closed without a role, also in other spellings of its path', async () => {
    for (const route of routes) {
      const path = pathOf(route);
      for (const spelling of [
        path,
        `${path}/`,
        `/${path}`,
        `./${path}`,
        `${path}?role=destroy`,
        `${path};x`,
        path.toUpperCase(),
      ]) {
        const { status, headers } = await as('nobody', route.method, spelling);
        expect([403, 404], `${route.method} ${spelling}`).toContain(status);
        expect(String(headers['content-type']), spelling).toMatch(/^(text\/plain|application\/json)/);
      }
    }
  });

  it('is closed to roles that are too low', async () => {
    for (const route of writing) {
      for (const role of ['view', 'act'] as const) {
        if (mayDo(role, roleFor(route))) continue;
        const { status } = await as(role, route.method, pathOf(route), {}, { 'x-http-method-override': 'GET' });
        expect(status, `${role}: ${route.method} ${route.path}`).toBe(403);
      }
    }
  });

  it('accepts no other method, and HEAD does no more than GET', async () => {
    const numbers = async () => {
      const { current } = await attacked.web.get<{ current: object }>('queues/default', { 'x-role': 'view' });
      return {
        ...current,
        timestamp: undefined,
        oldest_pending_ms: undefined,
        latency_msec: undefined,
        display_latency: undefined,
      };
    };
    const before = await numbers();
    for (const route of routes) {
      const path = `/asynq/api/${pathOf(route, 'default')}`;
      for (const method of [
        'PUT',
        'PATCH',
        'HEAD',
        'OPTIONS',
        ...(route.method === 'GET' ? ['POST', 'DELETE'] : ['GET']),
      ]) {
        if (routes.some((one) => one.path === route.path && one.method === method)) continue;
        const { status } = await attacked.web.raw(method, path, { 'x-role': 'destroy' });
        const known = method === 'HEAD' || method === 'OPTIONS' ? [200, 204, 400, 404, 500] : [404];
        expect(known, `${method} ${path}`).toContain(status);
      }
    }
    expect(await numbers()).toEqual(before);
  });

  it.each([
    'queues/default/tasks/..',
    'queues/default/',
    'queues/default/.',
    'queues//default',
    'queues/default%2f',
    'queues/./default',
  ])('deletes no queue by a path that a browser or a proxy would make of another: %s', async (path) => {
    const { status } = await attacked.web.raw('DELETE', `/asynq/api/${path}?force=true`, { 'x-role': 'destroy' });
    expect(status).toBe(404);
  });

  it('refuses strange names without an internal error', async () => {
    for (const route of routes.filter(({ path }) => path.includes('{'))) {
      for (const name of NAMES) {
        // Sent as it is: an HTTP client would remove the dots.
        const { status } = await attacked.web.raw(route.method, `/asynq/api/${pathOf(route, name)}`, {
          'x-role': 'destroy',
        });
        expect(status, `${route.method} ${route.path} ${JSON.stringify(name.slice(0, 20))}`).toBeLessThan(500);
      }
    }
    expect(await attacked.web.broker.inspection.hasQueue('default')).toBe(true);
  });

  it('refuses fields of the wrong type without an internal error', async () => {
    for (const route of writing.filter(({ body }) => body !== undefined)) {
      for (const field of fieldsOf(route)) {
        for (const value of VALUES) {
          const { status } = await as('destroy', route.method, realPathOf(route), {
            type: 't',
            task_ids: [],
            [field]: value,
          });
          const what = `${route.method} ${route.path} ${field}: ${JSON.stringify(value)?.slice(0, 40)}`;
          expect(status, what).toBeLessThan(500);
        }
      }
    }
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  it('accepts deeply nested bodies', async () => {
    for (const route of writing.filter(({ body }) => body !== undefined)) {
      for (const text of [DEEP, ...fieldsOf(route).map((field) => `{"type":"t","task_ids":[],"${field}":${DEEP}}`)]) {
        const headers = {
          'x-role': 'destroy',
          'content-type': 'application/json',
          'content-length': String(text.length),
        };
        const { status } = await attacked.web.raw(route.method, `/asynq/api/${realPathOf(route)}`, headers, text);
        expect(status, `${route.method} ${route.path} ${text.slice(0, 40)}`).toBeLessThan(500);
      }
    }
  });
});
