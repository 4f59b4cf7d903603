import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { request } from '../support/messages.js';
import { launch, Visit } from './chromium.js';

/*
 * Data meant to run in the page, to hang it, or to break its layout. Chromium itself reports
 * whether it does.
 */

const SCRIPT = `"><img src=x onerror=alert(1)><script>alert(2)</script>javascript:alert(3)`;
const EVIL = `${SCRIPT}\u202E\u2066\u0000\u001b[31m\u200b\n\r\t'\`\${alert(4)}{{5}}%00%2e%2e/${'long'.repeat(60)}`;
const MILLION = 999_000;

const PAYLOADS: Readonly<Record<string, Buffer>> = {
  script: Buffer.from(JSON.stringify({ [EVIL]: EVIL })),
  prototypes: Buffer.from('{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}},"toString":"x","__proto__":3}'),
  'one long word': Buffer.from(JSON.stringify('x'.repeat(MILLION))),
  'control characters': Buffer.alloc(MILLION, 7),
  'control characters between others': Buffer.from('a\u202e'.repeat(MILLION / 4)),
  'deep lists': Buffer.from('['.repeat(10_000) + ']'.repeat(10_000)),
  'deepest lists': Buffer.from('['.repeat(MILLION / 2) + ']'.repeat(MILLION / 2)),
  'no UTF-8': Buffer.from([0x22, 0xff, 0xfe, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0x22]),
  'huge numbers and half characters': Buffer.from(
    String.raw`["\ud800",{"\udfff":"\udc00x"},1e400,-1e400,${'9'.repeat(5_000)},0.${'1'.repeat(5_000)},1E-400,-0]`,
  ),
};

/**
 * Names of queues, tasks, types and headers. The blank one, which asynq refuses, is only used for a
 * queue.
 */
const NAMES = ['__proto__', EVIL, 'a/b?c#%2e%2e', '\ud83d'];

let browser: Browser;
let web: TestConsole;
let visit: Visit;

async function publish(broker: InMemoryBroker): Promise<void> {
  const now = broker.clock.now();
  const place = { host: EVIL, pid: 1, serverId: EVIL };
  const server = {
    ...place,
    strictPriority: false,
    status: EVIL,
    concurrency: 1,
    queues: { [EVIL]: 1, ['__proto__']: 2 },
  };
  const worker = { ...place, taskId: EVIL, taskType: EVIL, taskPayload: Buffer.from(EVIL), queue: EVIL };
  const times = { startTime: now, deadline: now + 1000 };
  await broker.monitoring.writeServerState(
    { ...server, startTime: now, activeWorkerCount: 1 },
    [{ ...worker, ...times }],
    600,
  );
  const entry = { id: EVIL, spec: EVIL, taskType: EVIL, taskPayload: Buffer.from(EVIL), enqueueOptions: [EVIL] };
  await broker.scheduling.writeSchedulerEntries(EVIL, [{ ...entry, nextEnqueueTime: 1, prevEnqueueTime: 1 }], 600);
}

beforeAll(async () => {
  [browser, web] = await Promise.all([launch(), startConsole({ access: 'destroy', refresh: '500ms', title: EVIL })]);
  const broker = web.broker as InMemoryBroker;
  for (const [id, payload] of Object.entries(PAYLOADS))
    await broker.producer.enqueue('default', [request({ id, type: id, payload })]);
  for (const name of NAMES) {
    const headers = { [name]: name, long: '\u0001'.repeat(100_000) };
    await broker.producer.enqueue(name, [
      request({ id: name, type: name, payload: Buffer.from('1'), headers, errorMsg: EVIL }),
    ]);
  }
  await broker.producer.enqueue(' ', [request({ id: 'x', type: 'x' })]);
  await publish(broker);
  visit = await Visit.start(browser, `${web.origin}/asynq/`, { width: 800 });
});
afterAll(async () => {
  await Promise.all([browser.close(), web.close()]);
});

it('runs none of it, and keeps its layout, on every page', async () => {
  const name = (text: string) => encodeURIComponent(Buffer.from(text).toString());
  const pages = NAMES.flatMap((one) =>
    ['', '/pending', `/tasks/${name(one)}`].map((rest) => `queues/${name(one)}${rest}`),
  );
  for (const page of [
    '',
    'servers',
    'schedules',
    `schedules/${name(EVIL)}`,
    'redis',
    'queues/default/pending',
    ...pages,
  ]) {
    await visit.open(page);
    expect([page, await visit.fits()]).toEqual([page, true]);
  }
});

it.each(Object.keys(PAYLOADS))('shows a payload as tree, text and bytes, and does not hang: %s', async (id) => {
  await visit.open(`queues/default/tasks/${encodeURIComponent(id)}`);
  const views = visit.page.getByRole('group', { name: 'Payload as' }).getByRole('button');
  for (const view of await views.all()) {
    await view.click();
    expect([await view.getAttribute('aria-pressed'), await visit.fits()]).toEqual(['true', true]);
  }
});

it('shows more of a long text on request', async () => {
  await visit.open(`queues/default/tasks/${encodeURIComponent('control characters')}`);
  await visit.page.getByRole('button', { name: 'Text', exact: true }).click();
  const named = visit.page.locator('.content-body .hidden-character');
  expect(await named.count()).toBe(2_000);
  await visit.press('More of 999,000 characters');
  expect(await named.count()).toBe(4_000);
});

it('draws the first of many queues, and more on request', async () => {
  const { page } = visit;
  for (let n = 0; n < 250; n++) await web.client.enqueue('x', {}, { queue: `zone-${n}` });
  (web.broker as InMemoryBroker).clock.advance(60_000); // the console's cached state of the queues expires
  await visit.open('');
  const rows = page.locator('table.queues tbody tr');
  const more = page.getByRole('button', { name: /^More of 2\d\d queues$/ });
  await more.waitFor();
  expect(await rows.count()).toBe(200);
  await more.click();
  await more.waitFor({ state: 'detached' });
  expect(await rows.count()).toBeGreaterThan(250);
  await page.getByRole('searchbox', { name: 'Filter queues' }).fill('zone-249');
  await rows.nth(1).waitFor({ state: 'detached' });
  expect(await rows.allTextContents()).toEqual([expect.stringContaining('zone-249')]);
});

it('causes no error in the console, and no request to other hosts', () => expect(visit.complaints).toEqual([]));
