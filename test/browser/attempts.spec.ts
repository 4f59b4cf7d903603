import { describe, expect, it } from 'vitest';
import { arrangeAttempts } from '../support/attempts.js';
import { request } from '../support/messages.js';
import type { Visit } from './chromium.js';
import { openDesk } from './desk.js';

describe('the attempts of a task', () => {
  const desk = openDesk({ access: 'act' });
  const card = (tab: Visit) => tab.page.getByRole('region', { name: 'Attempts' });

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('are listed newest first, with folded stacks, %s', async (_name, options) => {
    const id = await arrangeAttempts(desk.broker);
    const tab = await desk.visit(options);
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
    const tab = await desk.visit();
    tab.page.on('request', (sent) => {
      if (sent.url().endsWith('/attempts')) asked.push(sent.url());
    });
    await desk.broker.producer.enqueue('default', [request({ id: 'order-17' })]);
    await tab.open('queues/default/tasks/order-17');
    await tab.sees('0 of 25 used');
    expect([await card(tab).count(), asked]).toEqual([0, []]);
    desk.broker.clear();
    await arrangeAttempts(desk.broker, { id: 'order-17' });
    desk.broker.clock.advance(5_000);
    await tab.sees('Attempt 5');
  });
});
