import { ASYNQ_BROKER } from 'nestjs-asynq';
import { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { arrangeAttempts } from '../support/attempts.js';
import { request } from '../support/messages.js';
import { launch, Visit, type VisitOptions } from './chromium.js';

describe('the attempts of a task', () => {
  let web: TestConsole;
  let browser: Browser;
  let broker: InMemoryBroker;

  beforeAll(async () => {
    [browser, web] = await Promise.all([
      launch(),
      startConsole(
        { access: 'act', refresh: '250ms' },
        { override: (builder) => builder.overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker) },
      ),
    ]);
    broker = web.broker as InMemoryBroker;
  });
  afterAll(async () => {
    await Promise.all([browser.close(), web.close()]);
  });
  beforeEach(() => {
    broker.clear();
    broker.clock.advance(60_000); // the console's cached data expires
  });

  const visit = async (options?: VisitOptions): Promise<Visit> => {
    const tab = await Visit.start(browser, `${web.origin}/asynq/`, options);
    onTestFinished(() => tab.end());
    return tab;
  };
  const card = (tab: Visit) => tab.page.getByRole('region', { name: 'Attempts' });

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('are listed newest first, with folded stacks, %s', async (_name, options) => {
    const id = await arrangeAttempts(broker);
    const tab = await visit(options);
    await tab.open(`queues/default/tasks/${id}`);
    await tab.sees('Attempts 1 to 2: nothing is known any more');
    const rows = await card(tab).getByRole('listitem').allInnerTexts();
    expect(rows).toHaveLength(4);
    expect(rows[0]).toMatch(/^Attempt 5\s*crashed\s*web-2 \(pid 7\)\s*last sign of life[\s\S]*task lease expired/);
    expect(rows[1]).toMatch(/^Attempt 4\s*failed[\s\S]*web-1 \(pid 4242\)[\s\S]*no <b>box<\/b>/);
    expect(rows[2]).toMatch(/^Attempt 3\s*failed\s*1\.5 s[\s\S]*no parcel\s*stack/);
    expect(await tab.page.getByText('at ship (/app/ship.js:17:5)').isVisible()).toBe(false);
    await card(tab).getByText('stack').first().click();
    expect(await tab.page.getByText('at ship (/app/ship.js:17:5)').isVisible()).toBe(true);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
    expect(await tab.page.getByRole('region', { name: 'Timeline' }).innerText()).toMatch(/enqueued/);
  });

  it('are read again when another one has failed, and not asked for before', async () => {
    const asked: string[] = [];
    const tab = await visit();
    tab.page.on('request', (sent) => {
      if (sent.url().endsWith('/attempts')) asked.push(sent.url());
    });
    await broker.producer.enqueue('default', [request({ id: 'order-17' })]);
    await tab.open('queues/default/tasks/order-17');
    await tab.sees('0 of 25 used');
    expect([await card(tab).count(), asked]).toEqual([0, []]);
    broker.clear();
    await arrangeAttempts(broker, { id: 'order-17' });
    broker.clock.advance(5_000);
    await tab.sees('Attempt 5');
  });
});
