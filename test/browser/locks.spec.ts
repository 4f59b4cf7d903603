import type { Broker } from 'nestjs-asynq';
import type { DashboardPermission } from 'nestjs-asynq/dashboard';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDesk } from './desk.js';
import { EVIL } from './world.js';

describe('the locks of a queue', () => {
  let role: DashboardPermission = 'destroy';
  const desk = openDesk({ access: () => role, redact: [{ type: 'secret:' }] });

  beforeEach(() => {
    role = 'destroy';
  });
  const unique = { for: '1h', by: 'key' } as const;

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('are shown with their holders, and hostile or hidden keys harm nobody, %s', async (_name, options) => {
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'charge-7', key: 'order-7', unique });
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'evil', key: EVIL.slice(0, 100), unique });
    await desk.web.client.enqueue('secret:x', { a: 1 }, { taskId: 'hidden', key: 'order-8', unique });
    const tab = await desk.visit(options);
    await tab.open('queues/default/locks');
    await tab.sees('order-7');
    await tab.sees(/img src=x/);
    const hidden = tab.page.locator('tr[data-row]', { hasText: 'secret:x' });
    expect(await hidden.innerText()).toMatch(/redacted[\s\S]*hidden[\s\S]*pending/);
    expect(await hidden.getByRole('button').count()).toBe(0);
    expect(await tab.page.content()).not.toContain('order-8');
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
  });

  it('are a tab of its page, and lead to their holders by the keyboard', async () => {
    const tab = await desk.visit();
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'charge-7', key: 'order-7', unique });
    await tab.open('queues/default');
    await tab.page.getByRole('link', { name: 'Locks', exact: true }).click();
    await tab.sees('order-7');
    await tab.page.keyboard.press('j');
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('heading', { name: 'order:charge' }).waitFor();
    expect(tab.page.url()).toContain('queues/default/tasks/charge-7');
  });

  const keyOf7 = 'Free: order:charge:order-7:key';
  const locks = async () => (await desk.broker.uniqueness.list('default')).locks;

  it('are freed by the keyboard after a question, and the task stays', async () => {
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'charge-7', key: 'order-7', unique });
    const tab = await desk.visit();
    await tab.open('queues/default/locks');
    await tab.sees('order-7');
    const button = tab.page.getByRole('button', { name: keyOf7, exact: true });
    await tab.page.keyboard.press('j');
    await tab.page.keyboard.press('Tab');
    await tab.page.keyboard.press('Enter');
    await tab.sees('Free this lock?');
    await tab.sees('order:charge:order-7:key');
    expect(await tab.barriers()).toEqual([]);
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('dialog[open]').waitFor({ state: 'detached' });
    expect(await button.evaluate((one) => one === document.activeElement)).toBe(true);
    expect(await locks()).toHaveLength(1);
    await button.press('Enter');
    await tab.confirm('Free');
    await tab.sees('The lock is freed.');
    await tab.sees('No locks');
    expect(await locks()).toEqual([]);
    expect((await desk.broker.inspection.getTask('default', 'charge-7'))!.state).toBe('pending');
  });

  it('are not freed when another task holds them by then', async () => {
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'first', key: 'order-7', unique });
    const tab = await desk.visit({ width: 360, expected: [409] });
    await tab.open('queues/default/locks');
    await tab.press(keyOf7);
    await tab.sees('Free this lock?');
    expect(await tab.fits()).toBe(true);
    await desk.broker.uniqueness.release('default', (await locks())[0]!.lock, 'first');
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'second', key: 'order-7', unique });
    await tab.page.locator('dialog[open]').getByRole('button', { name: 'Free', exact: true }).click();
    await tab.sees('task "first" does not hold this lock now');
    expect(await locks()).toMatchObject([{ owner: { id: 'second' } }]);
  });

  it('are freed by nobody who may not destroy', async () => {
    role = 'act';
    await desk.web.client.enqueue('order:charge', {}, { key: 'order-7', unique });
    const tab = await desk.visit();
    await tab.open('queues/default/locks');
    await tab.sees('order-7');
    expect(await tab.page.getByRole('button', { name: keyOf7 }).count()).toBe(0);
  });

  it('are read page by page', async () => {
    await desk.web.client.enqueue('order:charge', {}, { taskId: 'charge-7', key: 'order-7', unique });
    const uniqueness: Broker['uniqueness'] = desk.broker.uniqueness;
    const list = uniqueness.list.bind(uniqueness);
    const paged = vi.spyOn(uniqueness, 'list');
    onTestFinished(() => paged.mockRestore());
    paged.mockImplementation(async (queue, cursor) =>
      cursor === undefined ? { locks: [], cursor: '17' } : list(queue, cursor),
    );
    const tab = await desk.visit();
    await tab.open('queues/default/locks');
    await tab.sees('There may be more on the next page.');
    await tab.page.keyboard.press('n');
    await tab.sees('order-7');
    expect(paged).toHaveBeenCalledWith('default', '17');
    await tab.page.keyboard.press('p');
    await tab.sees('No lock on this page');
  });

  it('may be none', async () => {
    await desk.web.client.enqueue('order:charge', {});
    const tab = await desk.visit();
    await tab.open('queues/default/locks');
    await tab.sees('No locks');
    expect(await tab.page.locator('.pages').count()).toBe(0);
  });
});
