import { beforeAll, describe, expect, it } from 'vitest';
import { fairHeader, request } from '../support/messages.js';
import { openDesk } from './desk.js';

describe('the keys of a fair queue', () => {
  const desk = openDesk({ access: 'view' });

  beforeAll(() => {
    desk.broker.fairQueues.add('default');
  });

  async function fill(names: readonly string[] = ['acme', '<img src=x onerror=alert(1)>', 'zeta']): Promise<void> {
    const requests = names.flatMap((key, index) =>
      Array.from({ length: 4 }, (_, number) => {
        const share = [{ concurrency: 1 }, {}, { rate: 2, window: 60_000, weight: 2 }][index % 3]!;
        return request({ id: `${index}-${number}`, type: 'import:row', headers: fairHeader(key, share) });
      }),
    );
    await desk.broker.producer.enqueue('default', requests);
    await desk.broker.consumer.exchange('default', { settle: [], take: 5 });
  }

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('are shown with what waits, runs and holds them, %s', async (_name, options) => {
    await fill();
    const tab = await desk.visit(options);
    await tab.open('queues/default/keys');
    await tab.sees('acme');
    await tab.sees(/img src=x/);
    const row = tab.page.locator('tr[data-row]', { hasText: 'acme' });
    expect(await row.innerText()).toMatch(/1 at a time[\s\S]*held[\s\S]*its concurrency/);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
  });

  it('are a tab of its page, and lead to their tasks by the keyboard', async () => {
    await fill(['acme']);
    const tab = await desk.visit();
    await tab.open('queues/default');
    await tab.page.getByRole('link', { name: 'Keys', exact: true }).click();
    await tab.sees('acme');
    await tab.page.keyboard.press('j');
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('link', { name: 'Keys', exact: true }).nth(1).waitFor();
    expect(tab.page.url()).toContain('queues/default/pending?key=acme');
    await tab.page.locator('tr[data-row]', { hasText: 'import:row' }).nth(2).waitFor();
    expect(await tab.page.locator('tr[data-row]').count()).toBe(3);
    expect(await tab.page.getByRole('button', { name: 'Delete all' }).count()).toBe(0);
    expect(await tab.barriers()).toEqual([]);
  });

  it('are found by their text, and by whether they are held', async () => {
    await fill();
    const tab = await desk.visit();
    await tab.open('queues/default/keys');
    await tab.sees('acme');
    await tab.page.keyboard.press('/');
    await tab.page.keyboard.type('zet');
    await tab.page.keyboard.press('Enter');
    await tab.page.locator('tr[data-row]', { hasText: 'acme' }).waitFor({ state: 'detached' });
    expect(tab.page.url()).toContain('search=zet');
    await tab.open('queues/default/keys');
    await tab.press('Only held');
    await tab.page.locator('tr[data-row]', { hasText: 'img src' }).waitFor({ state: 'detached' });
    await tab.sees('acme');
  });

  it('are read page by page, and may be none', async () => {
    const tab = await desk.visit();
    await desk.broker.producer.enqueue('other', [request({ queue: 'other' })]);
    await tab.open('queues/other/keys');
    await tab.sees('Only a fair queue has keys');
    await fill(Array.from({ length: 25 }, (_, index) => `tenant-${index + 10}`));
    await tab.open('queues/default/keys');
    await tab.sees('tenant-30');
    await tab.page.keyboard.press('n');
    await tab.page.locator('[data-prev]').waitFor();
    expect(tab.page.url()).toContain('cursor=');
  });
});
