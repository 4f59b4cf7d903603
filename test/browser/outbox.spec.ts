import type { DashboardPermission } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { OutboxFile } from '../support/outbox-file.js';
import { launch, Visit, type VisitOptions } from './chromium.js';
import { EVIL } from './world.js';

describe('the page of the outbox', () => {
  let outbox: OutboxFile;
  let web: TestConsole;
  let browser: Browser;
  let role: DashboardPermission = 'destroy';

  beforeAll(async () => {
    outbox = await OutboxFile.create();
    const metadata = { imports: [outbox.module] };
    [web, browser] = await Promise.all([
      startConsole({ access: () => role, refresh: '250ms' }, { metadata }),
      launch(),
    ]);
    outbox.exec(`INSERT INTO asynq_outbox_senders VALUES ('sender-1', 1, 'relay-1', 9e15), ('sender-2', 1, 'gone', 1)`);
  });
  afterAll(async () => {
    await Promise.all([browser.close(), web.close()]);
    outbox.close();
  });
  beforeEach(() => {
    role = 'destroy';
    outbox.poison(7, 'mail', EVIL);
    (web.broker as InMemoryBroker).clock.advance(60_000); // the console's cached data expires
  });

  const visit = async (options?: VisitOptions): Promise<Visit> => {
    const tab = await Visit.start(browser, `${web.origin}/asynq/`, options);
    onTestFinished(() => tab.end());
    return tab;
  };

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('shows the backlog, the relays and poisoned rows, %s', async (_name, options) => {
    outbox.add(8, 'mail', 'new');
    const tab = await visit(options);
    await tab.open('outbox');
    await tab.sees('waiting');
    await tab.sees('relay-1');
    await tab.sees('sender-2');
    await tab.sees(/img src=x/);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
  });

  it('has a poisoned row tried again', async () => {
    const tab = await visit();
    await tab.open('');
    await tab.page.keyboard.press('g');
    await tab.page.keyboard.press('u');
    await tab.press('Try again: row 7');
    await tab.sees('Row 7 is tried again.');
    await tab.sees('No row is poisoned.');
    expect(outbox.states).toEqual(['new']);
  });

  it('deletes a poisoned row after a question', async () => {
    const tab = await visit();
    await tab.open('outbox');
    await tab.press('Delete: row 7');
    expect(outbox.states).toEqual(['poisoned']);
    await tab.confirm('Delete');
    await tab.sees('No row is poisoned.');
    expect(outbox.states).toEqual([]);
  });

  it('lets nobody act who may only look', async () => {
    role = 'view';
    const tab = await visit();
    await tab.open('outbox');
    await tab.sees(/img src=x/);
    expect(await tab.page.getByRole('button', { name: /row 7/ }).count()).toBe(0);
  });
});
