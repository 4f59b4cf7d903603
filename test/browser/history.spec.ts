import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { launch, Visit, type VisitOptions } from './chromium.js';
import { FakePrometheus } from './fake-prometheus.js';

const QUEUES = ['billing', 'default', 'mail', 'reports', ...Array.from({ length: 8 }, (_, n) => `tenant-${n}`)];

describe('the history of queues', () => {
  let browser: Browser;
  let prometheus: FakePrometheus;
  let web: TestConsole;

  beforeAll(async () => {
    [browser, prometheus] = await Promise.all([launch(), FakePrometheus.start(QUEUES)]);
    web = await startConsole({ access: 'view', refresh: '250ms', prometheus: prometheus.address });
    for (const queue of QUEUES) await web.client.enqueue('x', {}, { queue });
    for (let n = 0; n < 3; n++) await web.client.enqueue('x', {}, { queue: 'mail' });
  });
  afterAll(async () => {
    await Promise.all([browser.close(), web.close()]);
    prometheus.stop();
  });
  const expireReplies = (): void => (web.broker as InMemoryBroker).clock.advance(60_000);
  beforeEach(() => {
    prometheus.refuse = undefined;
    expireReplies();
  });

  async function visit(route: string, options?: VisitOptions): Promise<Visit> {
    const started = await Visit.start(browser, `${web.origin}/asynq/`, options);
    onTestFinished(() => started.end());
    await started.open(route);
    return started;
  }
  const charts = ({ page }: Visit) => page.locator('.chart').filter({ has: page.locator('svg') });

  it.each([
    { width: 1280, dark: false },
    { width: 1280, dark: true },
    { width: 390, dark: false },
  ])('is drawn over days, %j', async (options) => {
    const tab = await visit('history?range=7+days', options);
    await charts(tab).nth(8).waitFor();
    expect(await tab.page.locator('.chart h2').allTextContents()).toEqual([
      'Processed',
      'Failed',
      'Error rate',
      'Latency',
      'Size',
      'Pending',
      'Retry',
      'Archived',
      'Memory',
    ]);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
    await tab.sees('The 8 of 12 queues with the most work today.');
    const first = charts(tab).first();
    // 8 lines, each with a gap.
    expect(await first.locator('path.line').count()).toBe(16);
    expect(await first.locator('.legend li').allTextContents()).toHaveLength(8);
    expect(await first.getByRole('img').getAttribute('aria-label')).toMatch(
      /^Processed, tasks\/s, last (?:7d|6d 23h)\. billing: now \d/,
    );
    if (options.width < 800) return;
    await first.locator('.plot').hover();
    expect(await first.locator('.tip p').first().textContent()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d$/);
  });

  it('requests the chosen range and queue, by mouse and keyboard, and keeps them in its address', async () => {
    const tab = await visit('');
    await tab.page.keyboard.press('g');
    await tab.page.keyboard.press('h');
    await tab.page.getByRole('heading', { name: 'History', level: 1 }).waitFor();
    await charts(tab).nth(8).waitFor();
    const last = () => prometheus.asked.at(-1)!;
    expect(Number(last().get('end')) - Number(last().get('start'))).toBe(86_400);
    expect(last().get('query')).toContain('mail');
    const range = tab.page.getByRole('group', { name: 'Range' });
    await range.getByRole('button', { name: '30 days' }).focus();
    await tab.page.keyboard.press('Enter');
    await range.getByRole('button', { name: '30 days', pressed: true }).waitFor();
    await tab.page.getByRole('combobox').selectOption('tenant-7');
    await tab.page.locator('.dim').waitFor({ state: 'detached' });
    await charts(tab).first().locator('.legend').waitFor({ state: 'detached' });
    expect(Number(last().get('end')) - Number(last().get('start'))).toBe(30 * 86_400);
    expect(last().get('query')).toContain('queue=~"tenant-7"');
    expect(Number(last().get('step'))).toBeGreaterThanOrEqual((30 * 86_400) / 240);
    expect(tab.page.url()).toMatch(/#\/history\?range=30\+days&queue=tenant-7$/);
    await charts(tab).first().getByRole('button', { name: 'numbers' }).click();
    await tab.page.getByRole('region', { name: 'Processed, numbers' }).getByRole('rowheader').first().waitFor();
  });

  it('shows a refusal of Prometheus, and the other charts', async () => {
    const body = JSON.stringify({
      status: 'error',
      errorType: 'execution',
      error: 'query processing would load too many samples',
    });
    prometheus.refuse = (query) => (query.includes('memory') ? { status: 422, body } : undefined);
    const tab = await visit('history');
    await charts(tab).nth(7).waitFor();
    const memory = tab.page.getByRole('region', { name: 'Memory' });
    await memory.getByText('Prometheus refuses: query processing would load too many samples').waitFor();
    expect(await tab.barriers()).toEqual([]);
  });

  it.each([
    [
      'all questions',
      400,
      JSON.stringify({ status: 'error', errorType: 'bad_data', error: 'exceeded maximum resolution' }),
      'Prometheus refuses: exceeded maximum resolution',
    ],
    ['those who are not signed in', 401, 'Unauthorized', 'responded with 401 Unauthorized and no JSON'],
  ])('shows one error when it refuses %s', async (_, status, body, text) => {
    prometheus.refuse = () => ({ status, body });
    const tab = await visit('history?range=6+hours', { expected: [502] });
    await tab.page.getByRole('alert').getByText(text).waitFor();
    expect(await tab.page.getByRole('alert').count()).toBe(1);
    expect(await charts(tab).count()).toBe(0);
    prometheus.refuse = undefined;
    expireReplies();
    await tab.press('Try again');
    await charts(tab).nth(8).waitFor();
  });

  it('shows no zero for values that were never measured', async () => {
    const body = JSON.stringify({ status: 'success', data: { resultType: 'matrix', result: [] } });
    prometheus.refuse = (query) => (query.includes('processed') ? { status: 200, body } : undefined);
    const tab = await visit('history?range=1+hour');
    await charts(tab).nth(6).waitFor();
    expect(await charts(tab).count()).toBe(7);
    await tab.page
      .getByRole('region', { name: 'Processed' })
      .getByText('no values of asynq_tasks_processed_total')
      .waitFor();
  });

  it('is hidden without a Prometheus', async () => {
    const none = await startConsole({ access: 'view' });
    onTestFinished(() => none.close());
    const tab = await Visit.start(browser, `${none.origin}/asynq/`);
    await tab.open('history');
    await tab.sees('This page does not exist');
    expect(await tab.page.getByRole('link', { name: 'History' }).count()).toBe(0);
    await tab.end();
  });
});
