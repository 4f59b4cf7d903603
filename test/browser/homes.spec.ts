import { createServer, request, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLATFORMS, startConsole, type TestConsole } from '../dashboard/console.js';
import { launch, Visit } from './chromium.js';

const PREFIX = '/ops/tools';

/** A proxy that removes the front of the path, as many do. */
async function startProxy(port: number): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? '').replace(PREFIX, '');
    const { method, headers } = incoming;
    const forward = request({ host: '127.0.0.1', port, path, method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(outgoing);
    });
    incoming.pipe(forward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

describe.each(PLATFORMS)('the page on %s', (platform) => {
  let browser: Browser;
  let open: TestConsole;
  let closed: TestConsole;
  let proxy: Server;

  beforeAll(async () => {
    [browser, open, closed] = await Promise.all([
      launch(),
      startConsole({ access: 'destroy', path: '/admin/queues' }, { platform }),
      startConsole({ access: 'view' }, { platform }),
    ]);
    proxy = await startProxy(Number(new URL(open.origin).port));
    for (const console of [open, closed]) await console.client.enqueue('mail:send', { n: 1 }, { taskId: 'a/b:c d' });
  });
  afterAll(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await Promise.all([browser.close(), open.close(), closed.close()]);
  });

  it('works below a path, behind a proxy that strips another', async () => {
    const { port } = proxy.address() as AddressInfo;
    const visit = await Visit.start(browser, `http://127.0.0.1:${port}${PREFIX}/admin/queues`);
    await visit.open('queues/default/pending');
    await visit.page.getByRole('link', { name: 'mail:send' }).click();
    await visit.press('Archive');
    await visit.page.getByRole('heading', { level: 1 }).getByText('archived').waitFor();
    expect(visit.page.url()).toContain(`${PREFIX}/admin/queues/#`);
    await visit.end();
  });

  it('never turns text into markup or a script, and is isolated from other windows', async () => {
    const visit = await Visit.start(browser, `${open.origin}/admin/queues/`);
    await visit.open('');
    const { page } = visit;
    const attempt = (code: string) =>
      page.evaluate(`(() => { try { ${code}; return 'done'; } catch (error) { return error.name; } })()`);
    expect(await attempt("document.body.insertAdjacentHTML('beforeend', '<b>x</b>')")).toBe('TypeError');
    expect(await attempt("document.createElement('script').src = 'x.js'")).toBe('TypeError');
    expect(await attempt("trustedTypes.createPolicy('mine', { createHTML: (text) => text })")).toBe('TypeError');
    expect(await attempt("new DOMParser().parseFromString('<b>x</b>', 'text/html')")).toBe('TypeError');
    expect(await page.evaluate('document.permissionsPolicy?.allowsFeature("camera") ?? false')).toBe(false);
    expect(visit.complaints.every((complaint) => /trusted/i.test(complaint))).toBe(true);
    await visit.context.close();
  });

  it('lists its software with licences', async () => {
    const visit = await Visit.start(browser, `${open.origin}/admin/queues/`);
    await visit.open('');
    await visit.press('? keys');
    const link = visit.page.getByRole('link', { name: 'Licences of the software in this page' });
    const file = await fetch(await link.evaluate((element) => (element as unknown as { href: string }).href));
    const { version, license } = createRequire(import.meta.url)('preact/package.json') as Record<string, string>;
    expect(await file.text()).toContain(`preact ${version} (${license})\n\nThe MIT License`);
    await visit.end();
  });

  it('offers no action that the role does not allow', async () => {
    const visit = await Visit.start(browser, `${closed.origin}/asynq/`);
    await visit.open('');
    await visit.page.getByRole('link', { name: '1 pending' }).waitFor();
    expect(await visit.page.getByRole('button', { name: /Pause/ }).count()).toBe(0);
    expect(await visit.page.getByRole('link', { name: 'Enqueue' }).count()).toBe(0);
    await visit.open('queues/default/pending');
    await visit.sees('mail:send');
    expect(await visit.page.getByRole('checkbox').count()).toBe(0);
    expect(await visit.page.getByRole('button', { name: /Delete|Archive/ }).count()).toBe(0);
    await visit.page.getByRole('link', { name: 'mail:send' }).click();
    await visit.page.getByRole('region', { name: 'Payload' }).waitFor();
    expect(await visit.page.locator('.actions button').count()).toBe(0);
    await visit.end();
  });
});
