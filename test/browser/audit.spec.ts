import type { DashboardPermission, DashboardRequest } from 'nestjs-asynq/dashboard';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { arrangeEveryState } from '../support/every-state.js';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { launch, Visit } from './chromium.js';

const SETS: Readonly<Record<string, DashboardPermission>> = {
  all: 'destroy',
  mail: { queues: { mail: 'act', 'reports*': 'view' } },
};

/** The login of the browser; the page itself sends no such header. */
let set = 'all';
const access = (_: DashboardRequest) => SETS[set];
const EVIL = '<img src=x onerror=alert(1)>\u202Egnp.'.padEnd(180, 'long');

describe('the audit trail and roles by queue, on the page', () => {
  let web: TestConsole;
  let browser: Browser;

  beforeAll(async () => {
    const actor = ({ headers }: DashboardRequest) => headers['x-name'] as string | undefined;
    web = await startConsole({ access, actor, refresh: '250ms' });
    for (const queue of ['mail', 'reports', 'payroll']) await arrangeEveryState(web.broker, queue);
    const as = (name: string, method: string, path: string, body?: unknown) =>
      web.api(method, path, body, { 'x-name': encodeURI(name) === name ? name : 'evil', 'x-asynq-console': '1' });
    for (let count = 0; count < 60; count++) await as('robot', 'POST', 'queues/reports/tasks', { type: 'r' });
    await as('alice', 'POST', 'queues/mail:pause');
    await as('alice', 'POST', 'queues/mail:resume');
    await as('bob', 'POST', 'queues/mail/retry_tasks:archive_all');
    await as('bob', 'POST', 'queues/mail/tasks/archived:clone', { queue: 'reports', task_id: 'copy' });
    await as('bob', 'POST', 'queues/mail/tasks/nobody:run');
    const now = web.broker.clock.now();
    const strange = { actor: EVIL, action: 'cancel', outcome: 'started', at: now, process: 'h:1', queue: 'mail' };
    const entry = { ...strange, taskId: EVIL, detail: 'delete', missing: 3 };
    await web.broker.events.appendEvents('audit', [Buffer.from(JSON.stringify(entry))], { most: 1_000 });
    await as('carol', 'POST', 'queues/payroll:pause');
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    await web.close();
  });

  const visit = (options = {}) => Visit.start(browser, `${web.origin}/asynq/`, options);

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 390 }],
    ['small', { width: 360, dark: true }],
  ])('shows who changed what, %s', async (name, options) => {
    set = 'all';
    const tab = await visit(options);
    await tab.open('audit');
    await tab.sees('carol');
    await tab.sees('archive all retry tasks');
    await tab.sees('3 changes or refused attempts before this one are missing; see the log');
    await tab.sees('ASYNQ_TASK_NOT_FOUND');
    if (process.env['SCREENSHOTS'])
      await tab.page.screenshot({ path: `${process.env['SCREENSHOTS']}/audit-${name}.png` });
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
    await tab.end();
  });

  it('is searched, and read to its end', async () => {
    set = 'all';
    const tab = await visit();
    const rows = () => tab.page.locator('.audit tbody tr').count();
    await tab.open('audit');
    await tab.sees('carol');
    expect(await rows()).toBe(50);
    await tab.press('Older');
    await expect.poll(rows).toBe(17);
    await tab.press('Newest');
    await expect.poll(rows).toBe(50);
    await tab.page.getByRole('searchbox', { name: 'actor' }).fill('bob');
    await tab.press('Search');
    await expect.poll(rows).toBe(3);
    await tab.page.getByLabel('result').selectOption('failed');
    await expect.poll(rows).toBe(1);
    expect(new URL(tab.page.url()).hash).toBe('#/audit?actor=bob&outcome=failed');
    await tab.page.getByRole('link', { name: 'mail', exact: true }).first().click();
    await tab.page.waitForURL(/#\/queues\/mail$/);
    await tab.end();
  });

  it('hides actions that are not allowed, by queue', async () => {
    set = 'mail';
    const tab = await visit({ expected: [403, 404] });
    await tab.open('');
    await tab.page.getByRole('button', { name: 'Pause queue mail' }).waitFor();
    expect(await tab.page.getByRole('button', { name: 'Pause queue reports' }).count()).toBe(0);
    expect(await tab.page.getByText('payroll').count()).toBe(0);
    expect(await tab.page.getByRole('link', { name: 'Redis', exact: true }).count()).toBe(0);
    if (process.env['SCREENSHOTS']) await tab.page.screenshot({ path: `${process.env['SCREENSHOTS']}/roles.png` });
    await tab.open('queues/mail/archived');
    await tab.page
      .getByRole('button', { name: /^Run now: all/ })
      .or(tab.page.getByRole('button', { name: /^Run/ }))
      .first()
      .waitFor();
    expect(await tab.page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
    await tab.open('queues/reports/tasks/archived');
    await tab.sees('email:archived');
    expect(await tab.page.getByRole('button', { name: /^(Run now|Clone|Delete|Edit)/ }).count()).toBe(0);
    await tab.open('audit');
    await tab.sees('alice');
    expect(await tab.page.getByText('carol').count()).toBe(0);
    await tab.open('enqueue');
    expect(
      await tab.page
        .locator('form.enqueue')
        .getByLabel(/^queue/i)
        .inputValue(),
    ).toBe('mail');
    await tab.end();
  });
});
