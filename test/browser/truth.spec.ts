import { ASYNQ_BROKER, type Broker } from 'nestjs-asynq';
import { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { failingBroker } from '../support/failing-broker.js';
import { request } from '../support/messages.js';
import { launch, Visit, type VisitOptions } from './chromium.js';

/* The page shows the truth: no numbers for unknown values, and counts as in Redis. */

const failing = failingBroker<Broker>(new InMemoryBroker());
const broker = failing.broker as InMemoryBroker;
const EVERYTHING = [
  'queues',
  'hasQueue',
  'describeQueue',
  'countsOfDays',
  'listTasks',
  'getTask',
  'groups',
  'servers',
  'schedulerEntries',
] as const;

let browser: Browser;
let web: TestConsole;

beforeAll(async () => {
  const override: NonNullable<Parameters<typeof startConsole>[1]>['override'] = (builder) =>
    builder.overrideProvider(ASYNQ_BROKER).useValue(failing.broker);
  [browser, web] = await Promise.all([launch(), startConsole({ access: 'destroy', refresh: '250ms' }, { override })]);
});
afterAll(async () => {
  await Promise.all([browser.close(), web.close()]);
});
beforeEach(() => {
  failing.faults.clear();
  broker.clear();
  broker.clock.advance(60_000); // the console's cached data expires
});

async function visit(route: string, options?: VisitOptions): Promise<Visit> {
  const started = await Visit.start(browser, `${web.origin}/asynq/`, options);
  onTestFinished(() => started.end());
  await started.open(route);
  return started;
}

const later = (milliseconds: number): void => broker.clock.advance(milliseconds);
const textOf = async ({ page }: Visit): Promise<string> =>
  (await page.locator('body').innerText()).replaceAll(/\s+/g, ' ');

describe('a page opened while Redis is away', () => {
  const PAGES = [
    '',
    'queues/mail',
    'queues/mail/archived',
    'queues/mail/pending?type=x',
    'queues/mail/aggregating',
    'servers',
    'schedules',
    'redis',
    'enqueue',
  ];

  it.each(PAGES)('shows no number for unknown values: %s', async (route) => {
    await broker.producer.enqueue('mail', [request({ queue: 'mail' })]);
    for (const method of EVERYTHING) failing.faults.set(method, 'before');
    const tab = await Visit.start(browser, `${web.origin}/asynq/`, { expected: [503] });
    onTestFinished(() => tab.end());
    await tab.page.goto(`${tab.home}#/${route}`);
    await tab.page.getByRole('alert').first().waitFor();
    const said = await textOf(tab);
    // Only the numbers in the error's text and in the page size (20 per page) are left.
    expect(said.replace(/default AsynqDashboard|10 m|\d+ per page/g, '')).not.toMatch(/\b\d/);
    expect(said).not.toMatch(/No queue yet|No \w+ task|No schedule|No server is running|no group has/i);
    failing.faults.clear();
    if (route === '') await tab.page.getByRole('link', { name: '1 pending' }).waitFor();
  });
});

it('shows a queue that cannot be read as unknown, and says that sums leave it out', async () => {
  const describeQueue = broker.inspection.describeQueue.bind(broker.inspection);
  broker.inspection.describeQueue = (queue) =>
    queue === 'bad' ? Promise.reject(new Error('a key is no list')) : describeQueue(queue);
  onTestFinished(() => void (broker.inspection.describeQueue = describeQueue));
  for (const queue of ['bad', 'good']) await broker.producer.enqueue(queue, [request({ queue })]);
  const tab = await visit('', { expected: [500] });
  await tab.sees('Not counting 1 queue that cannot be read.');
  await tab.open('queues/bad');
  await tab.page.getByRole('alert').getByText('a key is no list').waitFor();
  expect(await textOf(tab)).not.toContain('NaN');
});

it('shows how long a pending task has waited, and no due time', async () => {
  await broker.producer.enqueue('mail', [request({ id: 'waits', queue: 'mail' })]);
  later(200_000);
  const tab = await visit('queues/mail/tasks/waits');
  const timeline = tab.page.getByRole('region', { name: 'Timeline' });
  await timeline.getByText('pending').waitFor();
  await timeline.getByText(/3m 2\ds ago/).waitFor();
  expect(await timeline.innerText()).not.toMatch(/due|now/);
  await tab.page
    .getByRole('region', { name: 'Task' })
    .getByText(/^3m 2\ds$/)
    .waitFor();
  await tab.open('queues/mail/pending');
  await tab.page.getByRole('cell', { name: /^3m 2\ds$/ }).waitFor();
});

it('counts retries, not attempts', async () => {
  await broker.producer.enqueue('mail', [request({ id: 'once', queue: 'mail', maxRetry: 5, timeout: 60 })]);
  const { tasks } = await broker.consumer.exchange('mail', { settle: [], take: 1 });
  const { lease, message } = tasks[0]!;
  const failed = { ...message, errorMsg: 'skip retry', lastFailedAt: Math.floor(broker.clock.now() / 1000) };
  await broker.consumer.exchange('mail', { settle: [{ kind: 'archive', lease, message: failed }], take: 0 });
  const tab = await visit('queues/mail/tasks/once');
  await tab.page.getByRole('region', { name: 'Task' }).getByText('0 of 5 used').waitFor();
  expect(await textOf(tab)).not.toMatch(/\btries\b/);
  await tab.open('queues/mail/archived');
  await tab.page.getByRole('columnheader', { name: 'retries' }).waitFor();
});

it('lists finished tasks newest first, page by page, and searches them in this order', async () => {
  for (let n = 0; n < 45; n++) {
    const id = `task-${String(n).padStart(2, '0')}`;
    await broker.producer.enqueue('mail', [request({ id, queue: 'mail', type: 'mail' })]);
    await broker.administration.moveTasks('mail', 'archive', [id]);
    later(1000);
  }
  const tab = await visit('queues/mail/archived');
  const first = () => tab.page.locator('tbody .id').first().textContent();
  await tab.sees('1–20 of 45');
  expect(await first()).toBe('task-44');
  await tab.press('Next');
  await tab.sees('21–40 of 45');
  await tab.page.locator('.dim').waitFor({ state: 'detached' });
  expect(await first()).toBe('task-24');
  // A task archived meanwhile comes first, and does not move the others.
  await broker.producer.enqueue('mail', [request({ id: 'new', queue: 'mail' })]);
  await broker.administration.moveTasks('mail', 'archive', ['new']);
  await tab.press('Next');
  await tab.page.locator('tbody .id', { hasText: 'task-04' }).waitFor();
  expect(await first()).toBe('task-04');
  await tab.open('queues/mail/archived?type=mail');
  await tab.sees('all entries');
  expect(await first()).toBe('task-44');
});

it.each([1280, 390])('shows notices above the selection bar, not on it, %i pixels wide', async (width) => {
  const ids = Array.from({ length: 20 }, (_, n) => `task-${n}`);
  await broker.producer.enqueue(
    'mail',
    ids.map((id) => request({ id, queue: 'mail' })),
  );
  const tab = await visit('queues/mail/pending', { width });
  const bar = tab.page.getByRole('toolbar');
  await tab.page.getByLabel('Select task task-0').check();
  await bar.getByRole('button', { name: 'Archive' }).click();
  await tab.page.locator('.notice').waitFor();
  await tab.page.getByLabel('Select task task-1', { exact: true }).check();
  const [below, above] = [(await bar.boundingBox())!, (await tab.page.locator('.notice').boundingBox())!];
  expect(below.y).toBeGreaterThan(600);
  expect(above.y + above.height).toBeLessThanOrEqual(below.y);
  await tab.press('Clear');
  const freed = async () => (await tab.page.locator('.notice').boundingBox())!.y;
  await expect.poll(freed).toBeGreaterThan(above.y);
});

it('cuts off no tab, no navigation and no time of a schedule on a phone', async () => {
  const spec = 'CRON_TZ=America/Argentina/Buenos_Aires 0,5,10,15,20,25,30,35,40,45,50,55 0-23 1-31 1-12 0-6';
  const times = { nextEnqueueTime: Date.now(), prevEnqueueTime: undefined };
  const entry = { id: 'e', spec, taskType: 'report', taskPayload: Buffer.alloc(0), enqueueOptions: [], ...times };
  await broker.scheduling.writeSchedulerEntries('s', [entry], 600);
  await broker.producer.enqueue('mail', [request({ queue: 'mail' })]);
  for (const width of [390, 1280]) {
    const tab = await visit('queues/mail', { width });
    const cut = (selector: string) =>
      tab.page.locator(selector).evaluateAll((all) =>
        all
          .filter((one) => {
            const { left, right } = one.getBoundingClientRect();
            return left < 0 || right > innerWidth || one.scrollWidth > one.clientWidth + 1;
          })
          .map((one) => one.textContent),
      );
    expect([await cut('.tabs a'), await cut('.nav a')]).toEqual([[], []]);
    await tab.open('schedules');
    await tab.page.getByRole('cell', { name: spec }).waitFor();
    expect(await cut('td[data-label=spec] bdi, td[data-label=spec]')).toEqual([]);
  }
});
