import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { defineTask } from '../../lib/index.js';
import type { Visit } from './chromium.js';
import { EVIL, World } from './world.js';

const segment = encodeURIComponent;

const key = ({ orderId }: { orderId: string }): string => orderId;
const Pay = defineTask('order:pay', { key, rememberFor: '1d' });
const Ship = defineTask<{ orderId: string }>('order:ship', { key, queue: 'links' });

/** Every page, with a text on it. */
const PAGES: readonly [name: string, route: string, seen: string | RegExp][] = [
  ['overview', '', 'Throughput'],
  ['queue', 'queues/go', 'Groups'],
  ['unserved queue', 'queues/many', 'No running server takes tasks from this queue.'],
  ['active', 'queues/go/active', 'hang:mail'],
  ['retry', 'queues/go/retry', 'connection refused'],
  ['archived', 'queues/go/archived', 'Cannot be read (1)'],
  ['completed', 'queues/go/completed', '{"sent":true}'],
  ['groups', 'queues/default/aggregating', 'user:1'],
  ['search', 'queues/many/pending?type=ours', 'scanned'],
  ['task', 'queues/go/tasks/retry-1', '9007199254740993'],
  ['waiting', 'queues/links/waiting', 'order:ship'],
  ['waiting task', 'queues/links/tasks/ship', 'order-7'],
  ['evil task', `queues/${segment(EVIL)}/tasks/${segment(EVIL)}`, 'alert(1)'],
  ['servers', 'servers', 'hang:mail'],
  ['schedules', 'schedules', '@every 6h'],
  ['workflows', 'workflows', 'No runs'],
  ['batches', 'batches', 'No batches'],
  ['redis', 'redis', 'Memory by queue'],
  ['enqueue', 'enqueue', 'Options and headers'],
  ['nothing', 'nowhere/at/all', 'This page does not exist'],
];

describe('the pages of the console', () => {
  let world: World;

  beforeAll(async () => {
    world = await World.start();
    const first = await world.console.client.enqueue('order:check', {}, { queue: 'links', processIn: '1h' });
    await world.console.client.enqueue(Ship, { orderId: 'order-7' }, { taskId: 'ship', after: [Pay, first] });
  });
  afterAll(() => world.stop());

  describe.each([false, true])('with a dark theme: %s', (dark) => {
    let visit: Visit;

    beforeAll(async () => {
      visit = await world.visit({ dark });
    });
    afterAll(() => visit.end());

    it.each(PAGES)('have no barrier that axe finds: %s', async (_name, route, seen) => {
      await visit.open(route);
      await visit.sees(seen);
      // What does not depend on colours is the same in both.
      expect(await visit.barriers(dark ? ['color-contrast'] : undefined)).toEqual([]);
    });
  });

  it('fit on a phone', async () => {
    const visit = await world.visit({ width: 360 });
    for (const [name, route, seen] of PAGES) {
      await visit.open(route);
      await visit.sees(seen);
      expect(await visit.fits(), name).toBe(true);
    }
    await visit.end();
  });

  it('show an unreadable queue in a row of its own, with the others complete', async () => {
    const visit = await world.visit();
    await visit.open('');
    const row = visit.page.locator('tr', { hasText: 'broken' });
    await row.getByText('cannot be read').waitFor();
    expect(await row.getByText('cannot be read').count()).toBe(1);
    await visit.page.locator('tr', { hasText: 'many' }).getByRole('link', { name: '45 pending' }).waitFor();
    await visit.page.locator('tr', { hasText: 'go' }).getByRole('link', { name: '4 archived' }).first().waitFor();
    await visit.end();
  });

  it('sort queues, unhealthy first, and keep favourites', async () => {
    const visit = await world.visit();
    await visit.open('');
    const names = visit.page.locator('.queues tbody th.name a');
    const first = visit.page.locator('.queues tbody tr').first();
    await visit.page.getByRole('link', { name: '45 pending' }).waitFor();
    // Others are late by now if the tests before were slow.
    const flags = await visit.page
      .locator('.queues tbody tr')
      .evaluateAll((rows) =>
        rows.map(
          (row) => (row as unknown as { querySelector: (of: string) => unknown }).querySelector('.flag') !== null,
        ),
      );
    expect(flags).toEqual([...flags].sort().reverse());
    expect(flags).toContain(true);
    await visit.page.getByRole('button', { name: 'pending', exact: true }).press('Enter');
    await first.getByRole('link', { name: 'many', exact: true }).waitFor();
    expect(await visit.page.locator('th[aria-sort=descending]').textContent()).toContain('pending');
    await visit.page.getByRole('button', { name: 'Favourite: many' }).press('Space');
    await visit.page.getByLabel('Sort queues').selectOption('by queue');
    await visit.page.getByLabel('Show queues').selectOption('favourites (1)');
    await vi.waitFor(async () => expect(await names.allTextContents()).toEqual(['many']));
    expect(visit.page.url()).toContain('show=favourites');
    await visit.page.reload();
    await visit.settled();
    await vi.waitFor(async () => expect(await names.allTextContents()).toEqual(['many']));
    expect(await visit.barriers()).toEqual([]);
    await visit.end();
  });

  it('tell the result of a completed task, the time from enqueue to end where its id says it, and keys', async () => {
    const visit = await world.visit();
    await visit.open('queues/go/completed');
    const row = visit.page.locator('tr[data-row]', { hasText: 'completed-1' });
    await row.getByText('{"sent":true}').waitFor();
    expect(await row.locator('td[data-label="enqueue to end"]').textContent()).toBe('–');
    const servers = visit.page.getByRole('navigation').getByRole('link', { name: 'Servers', exact: true });
    expect(await servers.getAttribute('title')).toBe('Keys: g s');
    await visit.end();
  });

  it('show bytes as a tree, as text and as hex, and numbers with all their digits', async () => {
    const visit = await world.visit();
    await visit.open('queues/go/tasks/completed-1');
    const payload = visit.page.getByRole('region', { name: 'Payload' });
    await payload.getByText('9007199254740993').waitFor();
    await payload
      .getByRole('button', { name: /^▸ ?1/ })
      .or(payload.getByRole('button', { name: /1 key/ }))
      .click();
    await payload.getByText('deep').waitFor();
    await payload.getByRole('button', { name: 'Hex' }).click();
    await payload.getByText('7b 22 69 64 22').waitFor();
    await payload.getByRole('button', { name: 'Text' }).click();
    await payload.getByText('{"id":9007199254740993').waitFor();
    await visit.page.getByRole('region', { name: 'Result' }).getByText('sent').waitFor();
    await visit.open('queues/default/tasks/binary');
    await payload.getByText('00 ff 41').waitFor();
    await visit.open('queues/default/tasks/secret');
    await payload.getByText('redacted', { exact: true }).waitFor();
    expect(await visit.page.content()).not.toContain('4111');
    await visit.end();
  });

  it('show what a task waits for, and lead there', async () => {
    const visit = await world.visit();
    await visit.open('queues/links/tasks/ship');
    await visit.sees('order:pay');
    await visit.sees('If one of these fails, the task is archived. At the end of its wait, it is archived.');
    expect(await visit.page.getByRole('region', { name: 'Waits for' }).getByRole('listitem').count()).toBe(2);
    const reasons = visit.page.getByRole('region', { name: 'Why is it not running?' }).getByRole('listitem');
    await reasons.getByText('It waits for 2 of 2 tasks').waitFor();
    await visit.page.getByRole('region', { name: 'Waits for' }).getByRole('link').click();
    await visit.sees('order:check');
    await visit.end();
  });

  it('name hidden characters, and show markup as text', async () => {
    const visit = await world.visit();
    await visit.open(`queues/${segment(EVIL)}/pending`);
    await visit.sees('U+202E');
    const text = (await visit.page.locator('body').textContent()) ?? '';
    expect(text).not.toContain('\u202e');
    expect(await visit.page.locator('img').count()).toBe(0);
    await visit.end();
  });

  it('can be used with the keyboard', async () => {
    const visit = await world.visit();
    const { keyboard } = visit.page;
    await visit.open('');
    await keyboard.press('g');
    await keyboard.press('s');
    await visit.page.getByRole('heading', { name: 'Servers', level: 1 }).waitFor();
    await keyboard.press('?');
    const help = visit.page.getByRole('dialog', { name: 'Keys' });
    await help.getByRole('heading', { name: 'In the graph of a run' }).waitFor();
    expect(await visit.barriers()).toEqual([]);
    await keyboard.press('Escape');
    await visit.page.locator('dialog').waitFor({ state: 'detached' });
    await visit.open('queues/many/pending');
    await keyboard.press('j');
    await keyboard.press('j');
    await keyboard.press('k');
    await keyboard.press('x');
    await visit.sees('1 task selected');
    expect(await visit.page.getByRole('row').nth(1).getAttribute('aria-selected')).toBe('true');
    await visit.page.locator('[data-next]:enabled').waitFor();
    await keyboard.press('n');
    await visit.sees('21–40 of 45');
    await visit.page.locator('[data-prev]:enabled').waitFor();
    await keyboard.press('p');
    await visit.sees('1–20 of 45');
    await keyboard.press('/');
    await keyboard.type('ours');
    await keyboard.press('Enter');
    await visit.sees('all entries');
    expect(visit.page.url()).toContain('type=ours');
    await keyboard.press('Escape');
    await keyboard.press('j');
    await keyboard.press('Enter');
    await visit.page.waitForURL(/\/tasks\//);
    await visit.end();
  });

  it('switch the theme, and remember it', async () => {
    const visit = await world.visit();
    const background = (): Promise<string> =>
      visit.page.evaluate('getComputedStyle(document.documentElement).backgroundColor') as Promise<string>;
    await visit.open('');
    const light = await background();
    const theme = visit.page.getByRole('button', { name: /Theme/ });
    await theme.click();
    await theme.click();
    await vi.waitFor(async () => expect(await background()).not.toBe(light));
    await visit.page.reload();
    await visit.settled();
    expect(await background()).not.toBe(light);
    await visit.end();
  });

  it('poll once per interval, and not while the tab is hidden', async () => {
    const visit = await world.visit();
    await visit.open('');
    const asked = (): number => visit.requests.filter((request) => request.startsWith('GET live')).length;
    await vi.waitFor(() => expect(asked()).toBeGreaterThan(3));
    await visit.page.evaluate(`
      Object.defineProperty(document, 'hidden', { get: () => globalThis.__hidden ?? false });
      globalThis.__hidden = true;
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await visit.page.waitForFunction('performance.now() > 0');
    const before = asked();
    // Three intervals, counted by the page itself.
    await visit.page.evaluate('new Promise((resolve) => setTimeout(resolve, 750))');
    expect(asked() - before).toBeLessThanOrEqual(1);
    await visit.page.evaluate('globalThis.__hidden = false; document.dispatchEvent(new Event("visibilitychange"))');
    await vi.waitFor(() => expect(asked() - before).toBeGreaterThan(2));
    await visit.end();
  });

  it('say so while a reply is late', async () => {
    const visit = await world.visit();
    await visit.open('');
    await visit.page.getByRole('link', { name: '45 pending' }).waitFor();
    await visit.page.route('**/api/live*', () => undefined);
    await visit.sees('slow to respond');
    expect(await visit.page.getByText('no response').isVisible()).toBe(true);
    await visit.page.unrouteAll();
    await visit.end();
  });

  it('say so while Redis is away, keep their content, and recover', async () => {
    const visit = await world.visit({ expected: [503, 500] });
    await visit.open('');
    await visit.page.getByRole('link', { name: '45 pending' }).waitFor();
    await world.redis.kill();
    await visit.sees('Trying again');
    await visit.page.getByRole('link', { name: '45 pending' }).waitFor();
    expect(await visit.barriers(['color-contrast'])).toEqual([]);
    await world.redis.start();
    await visit.page.getByText('Trying again').waitFor({ state: 'detached', timeout: 30_000 });
    // Redis has come back empty; a queue that was listed of late may be listed again, with no task.
    await visit.page.getByRole('link', { name: '45 pending' }).waitFor({ state: 'detached' });
    await visit.end();
  });
});
