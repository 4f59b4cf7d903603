import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExecutionContext,
  ForbiddenException,
  Global,
  Injectable,
  Module,
  type NestInterceptor,
  UnauthorizedException,
  VersioningType,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { AsynqModule, AsynqOperationsModule, getAsynqClientToken, type AsynqClient } from 'nestjs-asynq';
import { AsynqDashboardModule, type DashboardRequest } from 'nestjs-asynq/dashboard';
import { AsynqMetricsModule } from 'nestjs-asynq/metrics';
import { Registry } from 'prom-client';
import { map, tap } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PLATFORMS, startConsole, type ConsoleOptions, type TestConsole } from '../console.js';

/*
 * The console in an application with guards, interceptors, filters, prefixes, versions and other
 * connections.
 */

describe('the application around the console', () => {
  type Headers = Record<string, string | undefined>;
  const headersOf = (context: ExecutionContext): Headers =>
    context.switchToHttp().getRequest<{ headers: Headers }>().headers;

  @Injectable()
  class Users {
    find(token: string | undefined) {
      return token === 'alice' ? { role: 'act' } : undefined;
    }
  }
  @Global()
  @Module({ providers: [Users], exports: [Users] })
  class UsersModule {}

  /** Finds the user with a provider of another module, and sets it on the request. */
  @Injectable()
  class TokenGuard implements CanActivate {
    constructor(private readonly users: Users) {}

    canActivate(context: ExecutionContext): boolean {
      const user = this.users.find(headersOf(context)['x-token']);
      Object.assign(context.switchToHttp().getRequest<object>(), { user });
      if (!user) throw new UnauthorizedException('show your token');
      return true;
    }
  }

  const start = async (
    dashboard: Parameters<typeof startConsole>[0],
    options: ConsoleOptions,
  ): Promise<TestConsole> => {
    const web = await startConsole(dashboard, options);
    onTestFinished(() => web.close());
    return web;
  };

  describe.each(PLATFORMS)('on %s', (platform) => {
    it('guards decide who comes in, and access what they may do', async () => {
      const access = ({ user }: DashboardRequest & { user: { role: 'act' } }) => user.role;
      const web = await start({ guards: [TokenGuard], imports: [UsersModule], access }, { platform });
      expect(await web.api('GET', 'queues')).toMatchObject({
        status: 401,
        text: 'show your token\n',
        headers: { 'x-asynq-error': 'UNAUTHORIZED', 'content-type': 'text/plain; charset=utf-8' },
      });
      expect(await web.raw('GET', '/asynq/')).toMatchObject({
        status: 401,
        text: expect.stringContaining('"statusCode":401'),
      });
      expect(await web.raw('GET', '/asynq/assets/x.js')).toMatchObject({ status: 401 });
      expect(await web.get('config', { 'x-token': 'alice' })).toMatchObject({ role: 'act' });
    });

    it('guards without access allow everything', async () => {
      const allow = { canActivate: (context: ExecutionContext) => headersOf(context)['x-token'] === 'bob' };
      const web = await start({ guards: [allow] }, { platform });
      expect(await web.api('GET', 'config')).toMatchObject({ status: 403 });
      expect(await web.get('config', { 'x-token': 'bob' })).toMatchObject({ role: 'destroy' });
    });

    it('global guards, interceptors and filters run, and do not change replies', async () => {
      const seen: string[] = [];
      @Injectable()
      class Wrap implements NestInterceptor {
        intercept(_: ExecutionContext, next: CallHandler) {
          return next.handle().pipe(
            tap(() => seen.push('interceptor')),
            map((data: unknown) => ({ data })),
          );
        }
      }
      @Catch()
      class Own {
        catch(_error: unknown, host: ArgumentsHost) {
          const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: unknown): void } }>();
          response.status(200).send({ error: 'wrapped' });
        }
      }
      const guard = {
        canActivate: (context: ExecutionContext) => {
          seen.push(`guard of ${context.getClass().name}`);
          if (headersOf(context)['x-deny']) throw new ForbiddenException('not today');
          return true;
        },
      };
      const providers = [
        { provide: APP_GUARD, useValue: guard },
        { provide: APP_INTERCEPTOR, useClass: Wrap },
        { provide: APP_FILTER, useClass: Own },
      ];
      const web = await start({ access: 'destroy' }, { platform, metadata: { providers } });
      await web.client.enqueue('x', { a: 1 }, { taskId: 'x' });
      expect(await web.get('queues/default/tasks/x')).toMatchObject({ id: 'x', payload: '{"a":1}' });
      expect(seen).toEqual(['guard of AsynqDashboardApiController', 'interceptor']);
      expect(await web.api('POST', 'queues/default/tasks/x:archive')).toMatchObject({ status: 204, text: '' });
      expect(await web.api('GET', 'queues/default/tasks/y')).toMatchObject({
        status: 404,
        text: expect.stringContaining('task not found: id="y", queue="default"; it has succeeded') as string,
      });
      expect(await web.api('GET', 'queues', undefined, { 'x-deny': '1' })).toMatchObject({
        status: 403,
        text: 'not today\n',
      });
      expect((await web.raw('GET', '/asynq', { 'x-deny': '1' })).text).toBe('{"error":"wrapped"}');
    });

    it('works below a global prefix and beside versions', async () => {
      const web = await start(
        { access: 'destroy', path: 'ops/tasks/' },
        {
          platform,
          base: '/v9/ops/tasks',
          prepare: (app) => app.setGlobalPrefix('v9').enableVersioning({ type: VersioningType.URI }),
        },
      );
      await web.client.enqueue('x', { a: 1 }, { taskId: 'a/b:c' });
      expect(await web.get('queues/default/tasks/a%2Fb%3Ac')).toMatchObject({ id: 'a/b:c' });
      expect(await web.raw('GET', '/v9/ops/tasks')).toMatchObject({ headers: { location: './tasks/' } });
      expect((await web.raw('GET', '/ops/tasks/api/queues')).status).toBe(404);
    });

    it('leaves other routes below its path alone', async () => {
      const modules = [
        AsynqOperationsModule.forRoot(),
        AsynqMetricsModule.forRoot({ path: 'asynq/metrics', registry: new Registry() }),
        AsynqDashboardModule.forRoot({ path: '/asynq/all', access: 'act' }),
      ];
      const nobody = { canActivate: () => false };
      const web = await start({ guards: [nobody] }, { platform, metadata: { imports: modules } });
      const status = async (path: string) => (await web.raw('GET', path)).status;
      expect(await status('/asynq/live')).toBe(200);
      expect(await status('/asynq/ready')).toBe(200);
      expect(await status('/asynq/metrics')).toBe(200);
      expect(await status('/asynq/all/api/config')).toBe(200);
      expect(await status('/asynq/')).toBe(403);
    });

    it('has a version if one is given', async () => {
      const web = await start(
        { access: 'destroy', version: '2' },
        { platform, base: '/v2/asynq', prepare: (app) => app.enableVersioning({ type: VersioningType.URI }) },
      );
      expect(await web.get('queues')).toEqual({ queues: [] });
      expect((await web.raw('GET', '/asynq/api/queues')).status).toBe(404);
    });

    it('serves one console per connection, also at the root', async () => {
      const imports = [
        AsynqModule.forRoot({ name: 'billing', connection: 'memory', server: false, scheduler: false, keyPrefix: 'b' }),
        AsynqDashboardModule.forRoot({ path: '/billing', connection: 'billing', access: 'view' }),
      ];
      const web = await start({ path: '/', access: 'act' }, { platform, base: '', metadata: { imports } });
      await web.app
        .get<AsynqClient>(getAsynqClientToken('billing'), { strict: false })
        .enqueue('x', {}, { queue: 'api' });
      expect(await web.get('config')).toMatchObject({ connection: 'default', key_prefix: 'asynq', role: 'act' });
      expect(await web.get('queues')).toEqual({ queues: [] });
      const billing = async (path: string) => JSON.parse((await web.raw('GET', `/billing/api/${path}`)).text) as object;
      expect(await billing('config')).toMatchObject({ connection: 'billing', key_prefix: 'b', role: 'view' });
      expect(await billing('queues/api/pending_tasks')).toMatchObject({ tasks: [{ type: 'x' }] });
      expect([200, 503]).toContain((await web.raw('GET', '/')).status); // 503: the page is not built
      expect((await web.raw('GET', '/nothing')).status).toBe(404);
    });

    it('takes its settings from a factory', async () => {
      const settings = { useFactory: (users: Users) => ({ access: () => users.find('alice')?.role as 'act' }) };
      const module = AsynqDashboardModule.forRootAsync({
        path: '/async',
        imports: [UsersModule],
        inject: [Users],
        ...settings,
      });
      const web = await start({ access: 'view' }, { platform, metadata: { imports: [module] } });
      expect((await web.raw('GET', '/async/api/config')).text).toContain('"role":"act"');
    });
  });
});
