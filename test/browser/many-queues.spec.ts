import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { encodeOccurrence } from '../../lib/event-streams/fleet-event.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { request } from '../support/messages.js';
import { launch, Visit, type VisitOptions } from './chromium.js';

/*
 * The console of a fleet with forty queues, of which three are unhealthy, as it is just after its process has started: there is one
 * sample, and what Redis keeps of the days before.
 */

const AREAS = ['billing', 'emails', 'exports', 'images', 'imports', 'ledger', 'reports', 'search', 'sync', 'webhooks'];
const QUEUES = AREAS.flatMap((area) => ['high', 'default', 'low', 'bulk'].map((level) => `${area}-${level}`));
const UNHEALTHY = ['images-bulk', 'ledger-high', 'webhooks-default'];
const DAY_MS = 86_400_000;

let browser: Browser;
let web: TestConsole;
let broker: InMemoryBroker;

/** Runs tasks of a queue; every tenth fails for good. */
async function work(queue: string, tasks: number): Promise<void> {
  await broker.producer.enqueue(
    queue,
    Array.from({ length: tasks }, () => request({ queue, type: `${queue.split('-')[0]}:run` })),
  );
  const { tasks: claimed } = await broker.consumer.exchange(queue, { settle: [], take: tasks });
  const settle = claimed.map(({ lease, message }, index) =>
    index % 10 === 9
      ? ({ kind: 'archive', lease, message: { ...message, errorMsg: 'refused' } } as const)
      : ({ kind: 'done', lease, uniqueKey: '' } as const),
  );
  await broker.consumer.exchange(queue, { settle, take: 0 });
}

/** What servers with the option `eventStream` write. */
async function tellDurations(): Promise<void> {
  const entries = Array.from({ length: 200 }, (_, index) => {
    const queue = QUEUES[index % QUEUES.length]!;
    const task = { id: `t${index}`, type: `${queue.split('-')[0]}:run`, queue };
    const details = { outcome: 'done', duration: 1 + index, retried: 0, maxRetry: 25 };
    return encodeOccurrence({ names: ['finished'], task, details } as never, 'host:1');
  });
  await broker.events.appendEvents('events', entries, { most: 10_000 });
}

beforeAll(async () => {
  [browser, web] = await Promise.all([launch(), startConsole({ access: 'destroy', refresh: '500ms' })]);
  broker = web.broker as InMemoryBroker;
  for (let day = 0; day < 60; day++) {
    for (let n = 0; n < 4; n++) await work(QUEUES[(day + 11 * n) % QUEUES.length]!, 10 + (day % 7) * 6);
    broker.clock.advance(DAY_MS);
  }
  const late = UNHEALTHY.slice(1);
  for (const queue of late) await broker.producer.enqueue(queue, [request({ queue })]);
  broker.clock.advance(20 * 60_000);
  for (const [index, queue] of QUEUES.entries()) {
    if (!late.includes(queue)) await work(queue, 40 + index);
    await broker.producer.enqueue(
      queue,
      Array.from({ length: (index * 7) % 30 }, () => request({ queue })),
    );
  }
  await new AsynqInspector(broker).pauseQueue(UNHEALTHY[0]!);
  await tellDurations();
  broker.clock.advance(10_000);
});
afterAll(() => Promise.all([browser.close(), web.close()]));

async function visit(route: string, options?: VisitOptions): Promise<Visit> {
  const started = await Visit.start(browser, `${web.origin}/asynq/`, options);
  onTestFinished(() => started.end());
  await started.open(route);
  return started;
}

const names = ({ page }: Visit) => page.locator('table.queues tbody tr th a').allTextContents();

describe.each([1280, 390])('forty queues, %s px wide', (width) => {
  it('show the three that need somebody first, and fit', async () => {
    const tab = await visit('', { width });
    await tab.sees('40 queues');
    expect(await names(tab)).toHaveLength(40);
    expect((await names(tab)).slice(0, 3).sort()).toEqual(UNHEALTHY);
    await tab.page.getByLabel('Show queues').selectOption('unhealthy');
    expect((await names(tab)).sort()).toEqual(UNHEALTHY);
    await tab.page.getByLabel('Show queues').selectOption('all');
    expect(await tab.fits()).toBe(true);
    expect(await tab.barriers()).toEqual([]);
  });

  it('show durations by type, and say of what', async () => {
    const tab = await visit('queues/ledger-high', { width });
    const card = tab.page.getByRole('region', { name: 'Durations by type' });
    await card.getByText('of the last 5 attempts in the event stream').waitFor();
    expect(await card.locator('tbody tr').allTextContents()).toEqual(['ledger:run101 ms181 ms181 ms50']);
    await tab.open('');
    await tab.sees('of the last 200 attempts in the event stream');
    await tab.press('All 40 types');
    expect(await tab.page.locator('.durations tbody tr').count()).toBe(40);
    expect(await tab.fits()).toBe(true);
  });

  it('have 7, 30 and 90 days, and charts that are filled at the start', async () => {
    const tab = await visit('', { width });
    await tab.page.getByRole('img', { name: /^Throughput.*mean of two days: now <0\.1/ }).waitFor();
    await tab.page.getByRole('img', { name: /^Failures.*mean of two days/ }).waitFor();
    await tab.sees('Last 30 days');
    await tab.press('7 days');
    await tab.sees('Last 7 days');
    await tab.press('90 days');
    await tab.sees('Last 61 days');
    expect(await tab.fits()).toBe(true);
    const scroll = tab.page.locator('section.days .scroll-x');
    expect(await scroll.evaluate((node) => node.scrollWidth <= node.clientWidth)).toBe(true); // today is in sight
    expect(await tab.barriers()).toEqual([]);
    await tab.open('queues/emails-low?days=90');
    await tab.sees(/^Last \d\d days/);
  });
});
