import { pathToFileURL } from 'node:url';
import { Controller, Get, Header, Inject, type INestApplication, Module, Res, type Type } from '@nestjs/common';
import type { CanActivate, ExceptionFilter } from '@nestjs/common';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DashboardRequest } from 'nestjs-asynq/dashboard';
import { PLATFORMS, startConsole } from '../dashboard/console.js';
import { PageSnippets } from '../e2e/snippets.js';
import { launch, Visit } from './chromium.js';

/* The guards of docs/dashboard.md, used with a real browser. */

interface Documented {
  readonly AdminGuard: Type<CanActivate>;
  readonly Sessions: Type<{ cookieFor(user: object, expiresAt: number): string }>;
  readonly SessionGuard: Type<CanActivate>;
  readonly LoginFilter: Type<ExceptionFilter>;
}

const PASSWORD = 'pa:ss wörd';
vi.stubEnv('CONSOLE_USER', 'alice');
vi.stubEnv('CONSOLE_PASSWORD', PASSWORD);
vi.stubEnv('SESSION_SECRET', 'a secret');

describe('the guards of the documentation', () => {
  let page: PageSnippets;
  let browser: Browser;
  let documented: Documented;

  beforeAll(async () => {
    [page, browser] = await Promise.all([PageSnippets.compile('docs/dashboard.md'), launch()]);
    const load = (file: string) => import(pathToFileURL(page.compiled(file)).href) as Promise<Documented>;
    documented = { ...(await load('app.module.ts')), ...(await load('session.ts')) };
  }, 120_000);
  afterAll(async () => {
    vi.unstubAllEnvs();
    await Promise.all([browser.close(), page.remove()]);
  });

  describe.each(PLATFORMS)('on %s', (platform) => {
    it('Basic: the browser is challenged for name and password, and sends them', async () => {
      const web = await startConsole({ guards: [documented.AdminGuard] }, { platform });
      onTestFinished(() => web.close());
      for (const path of ['/asynq/', '/asynq/api/queues', '/asynq/assets/x.js']) {
        expect(await web.raw('GET', path)).toMatchObject({
          status: 401,
          headers: { 'www-authenticate': 'Basic realm="console", charset="UTF-8"' },
        });
      }
      const wrong = Buffer.from('alice:guess').toString('base64');
      expect(await web.raw('GET', '/asynq/', { authorization: `Basic ${wrong}` })).toMatchObject({ status: 401 });
      expect(await web.raw('GET', '/asynq/', { authorization: 'Bearer alice' })).toMatchObject({ status: 401 });

      const httpCredentials = { username: 'alice', password: PASSWORD };
      const visit = await Visit.start(browser, `${web.origin}/asynq/`, { httpCredentials, expected: [401] });
      await web.client.enqueue('mail:send', {}, { taskId: 'one' });
      await visit.open('queues/default/tasks/one');
      await visit.press('Archive');
      await visit.page.getByRole('heading', { level: 1 }).getByText('archived').waitFor();
      await visit.end();
    });

    it('a session: the browser is redirected to the login, and returns with its cookie', async () => {
      const { Sessions, SessionGuard, LoginFilter } = documented;

      @Module({ providers: [Sessions], exports: [Sessions] })
      class SessionModule {}

      @Controller('login')
      class LoginController {
        constructor(@Inject(Sessions) private readonly sessions: InstanceType<Documented['Sessions']>) {}

        @Get()
        @Header('Content-Type', 'text/html')
        form(): string {
          return '<title>Sign in</title><a href="/login/done">sign in</a>';
        }

        @Get('done')
        done(@Res({ passthrough: true }) response: { header(name: string, value: string): unknown }): string {
          response.header(
            'Set-Cookie',
            this.sessions.cookieFor({ name: 'alice', groups: ['ops'] }, Date.now() + 60_000),
          );
          return 'done';
        }
      }

      const access = ({ user }: DashboardRequest & { user: { groups: string[] } }) =>
        user.groups.includes('ops') ? 'destroy' : 'view';
      const prepare = (app: INestApplication) => void app.useGlobalFilters(new LoginFilter());
      const metadata = { imports: [SessionModule], controllers: [LoginController] };
      const web = await startConsole(
        { imports: [SessionModule], guards: [SessionGuard], access },
        { platform, prepare, metadata },
      );
      onTestFinished(() => web.close());
      expect(await web.api('GET', 'queues')).toMatchObject({
        status: 401,
        headers: { 'x-asynq-error': 'UNAUTHORIZED' },
      });
      const old = new Sessions().cookieFor({ name: 'alice', groups: ['ops'] }, Date.now() - 1).split(';')[0]!;
      expect(await web.api('GET', 'queues', undefined, { cookie: old })).toMatchObject({ status: 401 });
      expect(await web.api('GET', 'queues', undefined, { cookie: `${old}x` })).toMatchObject({ status: 401 });

      // A browser takes a secure cookie over plain HTTP from this host only.
      const origin = web.origin.replace('127.0.0.1', 'localhost');
      const visit = await Visit.start(browser, `${origin}/asynq/`);
      await web.client.enqueue('mail:send', {}, { taskId: 'two' });
      await visit.page.goto(`${origin}/asynq/`);
      expect(new URL(visit.page.url()).pathname).toBe('/login');
      await visit.page.getByRole('link', { name: 'sign in' }).click();
      await visit.page.getByText('done').waitFor();
      await visit.open('queues/default/tasks/two');
      await visit.press('Archive');
      await visit.page.getByRole('heading', { level: 1 }).getByText('archived').waitFor();
      await visit.end();
    });
  });
});
