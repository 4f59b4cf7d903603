import { readFileSync } from 'node:fs';
import type { DynamicModule, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AsynqModule, InvalidOptionError } from 'nestjs-asynq';
import { AsynqDashboardModule, type AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import { afterEach, expect, test, vi, describe } from 'vitest';
import { packageVersion } from '../../../lib/dashboard/package-version.js';
import { quiet, rejection } from '../../nest/support.js';

describe('options', () => {
  afterEach(() => vi.unstubAllEnvs());

  const boot = async (options?: AsynqDashboardOptions, more: (Type | DynamicModule)[] = []) => {
    const imports = [AsynqModule.forRoot({ connection: 'memory' }), AsynqDashboardModule.forRoot(options), ...more];
    const app = await Test.createTestingModule({ imports }).setLogger(quiet).compile();
    await app.init();
    await app.close();
  };
  const allow = { canActivate: () => true };

  test.each(['production', 'test', ''])(
    'does not start open to everyone when NODE_ENV is "%s"',
    async (environment) => {
      vi.stubEnv('NODE_ENV', environment);
      const { message } = await rejection(boot());
      expect(message).toMatch(/"\/asynq" would be open to everyone.*guards.*access.*NODE_ENV is "development"/);
    },
  );

  test.each([{ guards: [allow] }, { access: 'view' as const }, { access: () => undefined }])(
    'starts in production when somebody said who may come in: %j',
    async (options) => {
      vi.stubEnv('NODE_ENV', 'production');
      await expect(boot(options)).resolves.toBeUndefined();
    },
  );

  test('starts without guards and access for development', async () => {
    vi.stubEnv('NODE_ENV', 'development');
    await expect(boot()).resolves.toBeUndefined();
  });

  test.each([
    [{ acess: 'view' }, /unknown AsynqDashboardModule option "acess"; did you mean "access"/],
    [{ access: 'destory' }, /option access is "destory"; did you mean "destroy"/],
    [{ access: { queue: { mail: 'view' } } }, /unknown key of .*option access: "queue"; did you mean "queues"/],
    [{ access: { queues: { mail: 'destory' } } }, /access\.queues\["mail"\] is "destory"; did you mean "destroy"/],
    [{ access: { queues: {}, default: 'nobody' } }, /access\.default is "nobody"; it must be "view".*"none"/],
    [{ access: {} }, /access\.queues must be an object, not undefined/],
    [{ access: [] }, /option access must be an object, not an array/],
    [{ path: '/a b' }, /option path must be a plain path .*not "\/a b"/],
    [{ path: '/a/../b' }, /option path/],
    [{ guards: class Nothing {} }, /option guards must be an array of guards.*, not a function/],
    [{ guards: [{ canActivate: () => true }, undefined] }, /option guards\[1\] must be one of guards.*, not undefined/],
    [{ redact: { password: true } }, /redact must be an array of rules, or a function, not an object/],
    [{ readOnly: 'yes' }, /option readOnly must be true or false, not "yes"/],
    [{ refresh: '10ms' }, /option refresh must be from 250ms to 1h/],
    [{ redact: [{ types: 'user:' }] }, /unknown key of .*redact\[0\] "types"; did you mean "type"/],
    [{ redact: [{ type: 'user:', fields: ['a..b'] }] }, /redact\[0\]\.fields must be/],
    [{ decoders: [{ name: 'x' }] }, /decoders\[0\]\.decode must be a function/],
    [{ prometheus: 'prometheus:9090' }, /option prometheus must be an address/],
    [{ trustedOrigins: ['ops.example.com'] }, /option trustedOrigins must be origins/],
  ])('refuses %j', (options, message) => {
    const make = () => AsynqDashboardModule.forRoot(options as AsynqDashboardOptions);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(message);
  });

  test('refuses an unknown connection', async () => {
    const { message } = await rejection(boot({ access: 'view', connection: 'biling' }));
    expect(message).toContain('the dashboard at "/asynq" is for the connection "biling"');
  });

  test('refuses a second console at the same path, and allows one at another path', async () => {
    const also = (path: string) => [AsynqDashboardModule.forRoot({ path, access: 'view' })];
    const { message } = await rejection(boot({ access: 'view' }, also('asynq/')));
    expect(message).toMatch(/two dashboards at "\/asynq".*another `path`/);
    await expect(boot({ access: 'view' }, also('/asynq/other'))).resolves.toBeUndefined();
    await expect(boot({ access: 'view' })).resolves.toBeUndefined(); // in another application
  });

  test('says that forRoot is missing', async () => {
    const { message } = await rejection(boot({ access: 'view' }, [AsynqDashboardModule]));
    expect(message).toMatch(/AsynqDashboardModule is imported without options.*forRoot/);
  });

  test('knows its own version', () => {
    expect(packageVersion).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
  });
});
