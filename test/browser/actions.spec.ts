import { readFile } from 'node:fs/promises';
import type { TaskInfo } from 'nestjs-asynq';
import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { request } from '../support/messages.js';
import type { Visit, VisitOptions } from './chromium.js';
import { World } from './world.js';

describe('what is done in the console by clicking', () => {
  let world: World;

  beforeAll(async () => {
    world = await World.start();
  });
  afterAll(() => world.stop());

  async function visit(route: string, options?: VisitOptions): Promise<Visit> {
    const started = await world.visit(options);
    onTestFinished(() => started.end());
    await started.open(route);
    return started;
  }

  const task = (queue: string, id: string): Promise<TaskInfo | undefined> => world.inspector.getTaskInfo(queue, id);
  const stateOf = async (queue: string, id: string) => (await task(queue, id))?.state;
  const untilState = (queue: string, id: string, state: string | undefined) =>
    vi.waitFor(async () => expect(await stateOf(queue, id)).toBe(state));
  const row = ({ page }: Visit, text: string): Locator => page.locator('tbody tr', { hasText: text });
  const put = (type: string, options: object) => world.console.client.enqueue(type, { n: 1 }, options);

  /** Tasks of a type that failed with these errors and will be retried. */
  async function fail(queue: string, type: string, errors: readonly string[]): Promise<void> {
    const { broker } = world.console;
    await broker.producer.enqueue(
      queue,
      errors.map(() => request({ queue, type })),
    );
    const { tasks } = await broker.consumer.exchange(queue, { settle: [], take: errors.length });
    const now = Math.floor(broker.clock.now() / 1000);
    const settle = tasks.map(({ lease, message }, index) => {
      const failed = { ...message, retried: 1, errorMsg: errors[index]!, lastFailedAt: now };
      return { kind: 'retry' as const, lease, message: failed, retryAt: now + 3600, countAsFailure: true };
    });
    await broker.consumer.exchange(queue, { settle, take: 0 });
  }

  it('pauses and resumes a queue', async () => {
    const tab = await visit('');
    await tab.press('Pause queue many');
    await tab.sees('Queue “many” is paused.');
    await row(tab, 'many').getByText('paused', { exact: true }).waitFor();
    expect((await world.inspector.getQueueInfo('many')).paused).toBe(true);
    await tab.press('Resume queue many');
    await row(tab, 'many').getByText('paused', { exact: true }).waitFor({ state: 'detached' });
    expect((await world.inspector.getQueueInfo('many')).paused).toBe(false);
  });

  it('enqueues a task, with every digit of its payload', async () => {
    const tab = await visit('enqueue?queue=fresh', { expected: [409] });
    const payload = '{"id": 9007199254740993, "text": "grüß"}';
    await tab.page.getByLabel('Type').fill('web:made');
    await tab.page.getByRole('textbox', { name: 'Payload' }).fill(payload);
    await tab.page.getByText('Options and headers').click();
    await tab.page.getByLabel('Id', { exact: true }).fill('made');
    await tab.page.getByLabel('Retries').fill('3');
    await tab.page.getByLabel('Expires unless begun, seconds').fill('60');
    await tab.page.getByLabel('When expired').selectOption('delete it');
    await tab.page.getByLabel('Headers, one per line').fill('tenant: acme');
    await tab.page.getByLabel('When', { exact: true }).selectOption('in');
    await tab.page.getByLabel('How long from now').fill('30');
    await tab.press('Enqueue');
    await tab.sees('The task is scheduled.');
    const made = (await task('fresh', 'made'))!;
    expect(made.payload.toString()).toBe(payload);
    expect(made).toMatchObject({ type: 'web:made', maxRetry: 3, state: 'scheduled' });
    expect(made.headers).toEqual({ tenant: 'acme', 'asynq-expires-at': expect.stringMatching(/^\d+ drop$/) as string });
    await tab.press('Enqueue');
    await tab.page.getByRole('alert').getByText('made').waitFor();
    await tab.page.getByRole('link', { name: 'Show it' }).click();
    await tab.page.getByRole('region', { name: 'Headers' }).getByText('acme').waitFor();
  });

  it('finds a task by its id, in whichever queue', async () => {
    const tab = await visit('', { expected: [404, 500] });
    await tab.page.getByLabel('Task id').fill('no-such-id');
    await tab.press('Find');
    await tab.sees('No queue has a task with the id “no-such-id”.');
    await tab.page.getByLabel('Task id').fill('retry-2');
    await tab.press('Find');
    await tab.page.waitForURL(/#\/queues\/go\/tasks\/retry-2/);
    await tab.sees('connection refused');
    expect(await tab.page.title()).toContain('retry-2');
  });

  it('edits, reschedules, runs, archives, clones and deletes a task', async () => {
    await put('one:task', { queue: 'single', taskId: 'one', processIn: '1h' });
    const tab = await visit('queues/single/tasks/one');
    await tab.press('Edit payload');
    const field = tab.page.locator('dialog').getByRole('textbox', { name: 'Payload' });
    expect(await field.inputValue()).toBe('{"n":1}');
    await field.fill('{"n":18446744073709551615}');
    await tab.confirm('Save');
    await tab.sees('18446744073709551615');
    expect((await task('single', 'one'))!.payload.toString()).toBe('{"n":18446744073709551615}');

    await tab.press('Reschedule');
    await tab.page.getByLabel('How long from now').fill('3');
    await tab.page.getByLabel('Unit').selectOption('86400');
    await tab.confirm('Reschedule');
    await tab.sees('The task is rescheduled.');
    const days = ((await task('single', 'one'))!.nextProcessAt!.getTime() - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(2.9);
    expect(days).toBeLessThan(3.1);

    await tab.press('Run now');
    await untilState('single', 'one', 'pending');
    await tab.page.getByRole('heading', { level: 1 }).getByText('pending').waitFor();
    await tab.press('Archive');
    await untilState('single', 'one', 'archived');

    await tab.press('Clone');
    const dialog = tab.page.locator('dialog');
    await dialog.getByLabel('Type').fill('copied:task');
    await dialog.getByLabel('Queue').fill('copies');
    await tab.confirm('Enqueue the copy');
    await tab.sees('A new task is enqueued.');
    const { tasks } = await world.inspector.listTasks('copies', 'pending');
    expect(tasks.map(({ type, payload }) => `${type} ${payload}`)).toEqual(['copied:task {"n":18446744073709551615}']);

    await tab.press('Delete');
    await tab.page.locator('dialog').getByRole('button', { name: 'Close' }).click();
    expect(await stateOf('single', 'one')).toBe('archived');
    await tab.press('Delete');
    await tab.confirm('Delete');
    await tab.page.waitForURL(/#\/queues\/single\/archived/);
    expect(await task('single', 'one')).toBeUndefined();
  });

  it('leaves a task alone that has moved since the dialog was opened', async () => {
    await put('one:task', { queue: 'moving', taskId: 'deleted', processIn: '1h' });
    await put('one:task', { queue: 'moving', taskId: 'put off', processIn: '1h' });
    for (const [id, action, does] of [
      ['deleted', 'Delete', 'Delete'],
      ['put off', 'Reschedule', 'Reschedule'],
    ] as const) {
      const tab = await visit(`queues/moving/tasks/${encodeURIComponent(id)}`, { expected: [409] });
      await tab.press(action);
      if (action === 'Reschedule') await tab.page.getByLabel('How long from now').fill('3');
      await world.inspector.runTask('moving', id);
      // The page has read the new state, but the dialog keeps the state it was opened with.
      await tab.page.getByRole('heading', { level: 1, includeHidden: true }).getByText('pending').waitFor();
      await tab.page.locator('dialog[open]').getByRole('button', { name: does, exact: true }).click();
      await tab.page.getByRole('alert').getByText(id).waitFor();
      expect(await stateOf('moving', id)).toBe('pending');
    }
  });

  const payloadOf = async (queue: string, id: string) => (await task(queue, id))!.payload;

  it('keeps a payload intact that is too large to be loaded', async () => {
    const large = Buffer.from(`{"text":"${'x'.repeat(1_048_556)}"}`);
    await world.console.client.enqueue('large', large, { queue: 'single', taskId: 'large', processIn: '1h' });
    const tab = await visit('queues/single/tasks/large');
    await tab.sees('too large, only its beginning is shown');
    expect(await tab.page.getByRole('button', { name: 'Edit payload' }).count()).toBe(0);
    expect(await tab.page.getByRole('button', { name: 'Copy the payload' }).count()).toBe(0);
    const [download] = await Promise.all([
      tab.page.waitForEvent('download'),
      tab.page.getByRole('link', { name: 'Download the payload' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('large-payload.json');
    expect((await readFile(await download.path())).equals(large)).toBe(true);
    await tab.press('Clone');
    await tab.page.locator('dialog').getByText('copied unchanged').waitFor();
    await tab.page.locator('dialog').getByLabel('Queue').fill('large-copies');
    await tab.confirm('Enqueue the copy');
    await tab.sees('A new task is enqueued.');
    const { tasks } = await world.inspector.listTasks('large-copies', 'scheduled');
    expect(
      [...tasks, ...(await world.inspector.listTasks('large-copies', 'pending')).tasks].map(({ payload }) =>
        payload.equals(large),
      ),
    ).toEqual([true]);
    expect((await payloadOf('single', 'large')).equals(large)).toBe(true);
  });

  it('replaces only the payload it has loaded', async () => {
    await world.console.client.enqueue('shared', Buffer.from('first'), {
      queue: 'single',
      taskId: 'shared',
      processIn: '1h',
    });
    const tab = await visit('queues/single/tasks/shared', { expected: [409] });
    await tab.press('Edit payload');
    const dialog = tab.page.locator('dialog');
    await dialog.getByRole('textbox', { name: 'Payload' }).fill('mine');
    await world.inspector.updateTaskPayload('single', 'shared', Buffer.from('theirs'));
    // The page has read the new payload by now, but the dialog keeps the old one.
    await tab.page.getByRole('region', { name: 'Payload', includeHidden: true }).getByText('theirs').waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').getByText('not the one to be replaced').waitFor();
    expect((await payloadOf('single', 'shared')).toString()).toBe('theirs');
  });

  it('keeps the line breaks and bytes that a text field would change', async () => {
    for (const [id, payload] of [
      ['lines', 'a\r\nb\rc'],
      ['bytes', '\xff\0\xfe'],
    ] as const) {
      const bytes = Buffer.from(payload, 'latin1');
      await world.console.client.enqueue('odd', bytes, { queue: 'single', taskId: id, processIn: '1h' });
      const tab = await visit(`queues/single/tasks/${id}`);
      await tab.press('Edit payload');
      const field = tab.page.locator('dialog').getByRole('textbox', { name: 'Payload' });
      expect(await field.inputValue()).toBe(bytes.toString('base64'));
      await field.press('End');
      await field.press('Space');
      await tab.confirm('Save');
      await tab.sees('The payload is changed.');
      expect((await payloadOf('single', id)).equals(bytes)).toBe(true);
    }
  });

  it('says that a task is gone, and keeps showing it', async () => {
    await put('short:lived', { queue: 'single', taskId: 'gone' });
    const tab = await visit('queues/single/tasks/gone', { expected: [404] });
    await tab.sees('short:lived');
    await world.inspector.deleteTask('single', 'gone');
    await tab.sees('This task is gone');
    expect(await tab.page.locator('.actions button').count()).toBe(0);
    await tab.sees('short:lived');
    await tab.open('queues/single/tasks/never');
    await tab.sees('There is no such task');
  });

  it('acts on one task in its row', async () => {
    for (const id of ['first', 'second']) await put('row:task', { queue: 'rows', taskId: id, processIn: '1h' });
    const tab = await visit('queues/rows/scheduled');
    await tab.press('Run now: task first');
    await untilState('rows', 'first', 'pending');
    await tab.press('Archive: task second');
    await untilState('rows', 'second', 'archived');
    await tab.open('queues/rows/archived');
    await tab.press('Delete: task second');
    await tab.confirm('Delete');
    await tab.sees('No archived task');
    expect(await task('rows', 'second')).toBeUndefined();
  });

  it('acts on selected tasks, and reports a partial success', async () => {
    for (const id of ['s1', 's2', 's3']) await put('batch:task', { queue: 'batch', taskId: id });
    const tab = await visit('queues/batch/pending');
    for (const id of ['s1', 's2']) await tab.page.getByLabel(`Select task ${id}`).check();
    await tab.sees('2 tasks selected');
    // Deleted after the page has sent its request: before that it could read the list again and
    // drop the selection.
    await tab.page.route('**/pending_tasks:batch_archive', async (route) => {
      await world.inspector.deleteTask('batch', 's1');
      await route.continue();
    });
    await tab.page.getByRole('toolbar').getByRole('button', { name: 'Archive' }).click();
    await tab.sees('1 task archived, 1 not: s1');
    await untilState('batch', 's2', 'archived');
    await tab.open('queues/batch/archived');
    await tab.page.getByLabel('Select all on this page').check();
    await tab.page.getByRole('toolbar').getByRole('button', { name: 'Run now' }).click();
    await untilState('batch', 's2', 'pending');
    await tab.open('queues/batch/pending');
    await tab.page.getByLabel('Select all on this page').check();
    await tab.page.getByRole('toolbar').getByRole('button', { name: 'Delete' }).click();
    await tab.confirm('Delete');
    await tab.sees('2 tasks deleted.');
    expect((await world.inspector.getQueueInfo('batch')).size).toBe(0);
  });

  it('links a failure to all tasks that fail for this reason', async () => {
    const shops = Array.from({ length: 30 }, (_, n) => `https://shop-${n}.example.com answered ${500 + n}`);
    await fail('failing', 'mail', ['mailbox is full']);
    await fail('failing', 'webhook', shops);
    const tab = await visit('queues/failing');
    await row(tab, 'webhook').getByRole('link', { name: '30 retry' }).click();
    await tab.sees('30 tasks found');
    await tab.press('Archive: all that match');
    await tab.sees('30 tasks match.');
    await tab.confirm('Archive all');
    await tab.sees('30 tasks archived.');
    expect(await world.inspector.getQueueInfo('failing')).toMatchObject({ retry: 1, archived: 30 });
    await tab.open('queues/failing');
    await row(tab, 'webhook').getByRole('link', { name: '30 archived' }).waitFor();
  });

  it('counts what matches, acts part by part, and stops when it is told to', async () => {
    await world.console.client.enqueueMany(
      'plenty',
      Array.from({ length: 12_000 }, (_, index) => ({ order: { id: index % 2 } })),
      { queue: 'plenty' },
    );
    const tab = await visit('queues/plenty/pending?field=order.id%3D1');
    await tab.sees('tasks found');
    // Each part waits until the test lets it go on.
    const parts: (() => Promise<void>)[] = [];
    await tab.page.route('**/pending_tasks:archive_matching', (route) => void parts.push(() => route.continue()));
    await tab.press('Archive: all that match');
    await tab.sees('6,000 tasks match.');
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Archive all' }).click();
    await vi.waitFor(() => expect(parts).toHaveLength(1));
    await tab.sees('0 of 6,000 tasks …');
    await parts[0]!();
    await vi.waitFor(() => expect(parts).toHaveLength(2));
    await tab.sees('2,500 of 6,000 tasks …');
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await parts[1]!();
    await tab.sees('5,000 tasks archived. Stopped before the end of the list.');
    expect(await world.inspector.getQueueInfo('plenty')).toMatchObject({ archived: 5_000, pending: 7_000 });
    expect(parts).toHaveLength(2);
    await tab.open('audit');
    await tab.sees('archive matching pending tasks with field');
    await world.inspector.deleteQueue('plenty', { force: true });
  }, 180_000); // its page searches thousands of tasks at each refresh

  it('acts on all tasks of a state, written by Go', async () => {
    const tab = await visit('queues/go/scheduled');
    await tab.press('Archive: all scheduled tasks');
    await tab.confirm('Archive all');
    await tab.sees('3 tasks archived.');
    await tab.sees('No scheduled task');
    expect(await tab.page.getByRole('button', { name: 'Next' }).count()).toBe(0);
    await tab.open('queues/go/completed');
    await tab.press('Delete: all completed tasks');
    await tab.confirm('Delete all');
    await tab.sees('3 tasks deleted.');
    await tab.open('queues/default/aggregating');
    await tab.page.getByRole('main').getByRole('link', { name: 'user:1' }).click();
    await tab.page.getByLabel('Select task aggregating-1').check();
    await tab.page.getByRole('toolbar').getByRole('button', { name: 'Archive' }).click();
    await untilState('default', 'aggregating-1', 'archived');
    await tab.press('Run now: all aggregating tasks');
    await tab.confirm('Run now all');
    await untilState('default', 'aggregating-2', 'pending');
    expect(await world.inspector.getQueueInfo('go')).toMatchObject({ scheduled: 0, completed: 0, archived: 7 });
  });

  it('deletes an entry that cannot be read', async () => {
    const tab = await visit('queues/go/archived');
    await tab.press('Delete ghost');
    await tab.sees('Entry “ghost” is deleted.');
    await tab.page.getByText('Cannot be read').waitFor({ state: 'detached' });
    expect(await world.client.zscore('asynq:{go}:archived', 'ghost')).toBeNull();
  });

  it('cancels a task of ours, with a reason, and one of Go', async () => {
    await put('ours:slow', { queue: 'ours', taskId: 'slow' });
    await untilState('ours', 'slow', 'active');
    const tab = await visit('queues/ours/active');
    await tab.sees('page 2 of 5');
    expect(await row(tab, 'slow').getByRole('progressbar').getAttribute('value')).toBe('0.4');
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
    await tab.open('queues/ours/tasks/slow');
    await tab.press('Cancel');
    await tab.page.getByRole('textbox', { name: /Reason/ }).fill('wrong recipient');
    await tab.page.getByLabel('Afterwards').selectOption('archive');
    await tab.confirm('Cancel it');
    await untilState('ours', 'slow', 'archived');
    expect((await task('ours', 'slow'))!.lastErr).toContain('wrong recipient');
    await tab.page.getByRole('region', { name: 'Last error' }).getByText('wrong recipient').waitFor();

    await tab.open('servers');
    await tab.press('Cancel task active-1');
    await tab.confirm('Cancel it');
    await untilState('go', 'active-1', 'retry');
  });

  it('knows the pages before when the list is drawn again just after the click', async () => {
    const tab = await visit('queues/many/pending');
    // As when the browser is busy: the page is told of its new address only after the list has come again.
    await tab.page.addInitScript(
      "addEventListener('hashchange', (event) => event.isTrusted && event.stopImmediatePropagation())",
    );
    await tab.page.reload();
    await tab.sees('1–20 of 45');
    await tab.press('Next');
    for (let reply = 0; reply < 2; reply++)
      await tab.page.waitForResponse((response) => response.url().includes('/queues/many/'));
    await tab.page.evaluate("dispatchEvent(new Event('hashchange'))");
    await tab.sees('21–40 of 45');
    expect(await tab.page.locator('.pager .number').textContent()).toBe('21–40 of 45');
  });

  it('pages through a list without losing a task', async () => {
    const tab = await visit('queues/many/pending');
    const seen = new Set<string>();
    for (const range of ['1–20 of 45', '21–40 of 45', '41–45 of 45']) {
      await tab.sees(range);
      await tab.page.locator('.dim').waitFor({ state: 'detached' });
      for (const id of await tab.page.locator('tbody .id').allTextContents()) seen.add(id);
      if (!range.startsWith('41')) await tab.press('Next');
    }
    expect(seen.size).toBe(45);
    await tab.press('Previous');
    await tab.sees('21–40 of 45');
    await tab.page.goBack();
    await tab.page.getByLabel('Tasks per page').selectOption('50');
    await tab.sees('1–45 of 45');
  });

  it('searches, and can be stopped and resumed', async () => {
    const tab = await visit('queues/many/pending');
    await tab.page.getByLabel('payload contains').fill('"index":44');
    await tab.press('Search');
    await tab.sees('1 task');
    await tab.sees('all entries');
    // An endless list: every reply says that there is more.
    const reply = { tasks: [], damaged: [], scanned: 5000, next_cursor: 'more' };
    await tab.page.route('**/pending_tasks?*scan=*', (route) => route.fulfill({ json: reply }));
    await tab.press('Search again');
    await tab.sees(/scanned [\d,]{6,}/);
    await tab.press('Stop');
    const line = tab.page.locator('.search-state');
    await line.getByRole('button', { name: 'Continue' }).waitFor();
    const stopped = await line.textContent();
    await tab.page.unroute('**/pending_tasks?*scan=*');
    expect(await line.textContent()).toBe(stopped);
    await tab.press('Search again');
    await tab.sees('all entries');
  });

  it('keeps the selection while the list is read again', async () => {
    const tab = await visit('queues/many/pending');
    const first = tab.page.locator('tbody input').first();
    await first.check();
    const asked = (): number => tab.requests.filter((request) => request.includes('pending_tasks')).length;
    await vi.waitFor(() => expect(asked()).toBeGreaterThan(1));
    expect(await first.isChecked()).toBe(true);
  });

  it('runs a schedule now', async () => {
    const tab = await visit('schedules');
    await tab.press('Run now: ours:report');
    await tab.sees('“ours:report” is enqueued.');
    const { tasks } = await world.inspector.listTasks('reports', 'pending');
    expect(tasks.map(({ type, payload }) => `${type} ${payload}`)).toEqual(['ours:report {"kind":"daily"}']);
    await row(tab, 'ours:report')
      .getByRole('link', { name: /ours:report/ })
      .click();
    await tab.page.getByRole('region', { name: 'Payload' }).getByText('daily').waitFor();
  });

  it('suggests types, and fills in the payload of a recent task as far as it may be seen', async () => {
    const tab = await visit('enqueue?queue=default');
    const { page } = tab;
    const suggested = (type: string): Promise<void> =>
      page.locator(`#known-types option[value="${type}"]`).waitFor({ state: 'attached' });
    await suggested('secret:pay');
    await page.getByLabel('Type').fill('secret:pay');
    await tab.press('Fill in the payload of a recent secret:pay');
    await tab.sees('Parts are hidden by a redaction rule');
    const payload = page.getByLabel('Payload', { exact: true });
    expect(JSON.parse(await payload.inputValue())).toEqual({ card: '[redacted]', sum: 1 });
    expect(await tab.barriers()).toEqual([]);
    await page.getByLabel('Queue', { exact: true }).fill('go');
    await page.getByLabel('Type').fill('fail:mail');
    await tab.press('Fill in the payload of a recent fail:mail');
    await tab.sees('This is the payload of task');
    expect(await payload.inputValue()).toBe('{"id":9007199254740993,"tags":["a",{"deep":[1]}]}');
    await page.getByLabel('Queue', { exact: true }).fill('ours');
    await suggested('ours:idle'); // only a handler has it
    await page.getByLabel('Type').fill('ours:idle');
    await page.getByRole('button', { name: /^Fill in/ }).waitFor({ state: 'detached' });
    expect(await page.getByRole('button', { name: /^Fill in/ }).count()).toBe(0);
  });

  it('pauses and resumes a schedule, on its page and in the list', async () => {
    const tab = await visit('schedules');
    const entry = async () =>
      (await world.inspector.schedulerEntries()).find(({ taskType }) => taskType === 'ours:report')!;
    await tab.press('Pause: ours:report');
    await tab.sees('The schedule of “ours:report” is paused.');
    await row(tab, 'ours:report').getByText('paused', { exact: true }).waitFor();
    expect((await entry()).pausedAt).toBeInstanceOf(Date);
    await tab.open(`schedules/${(await entry()).id}`);
    await tab.press('Resume: ours:report');
    await tab.sees('The schedule of “ours:report” is resumed.');
    await tab.page.getByRole('button', { name: 'Pause: ours:report' }).waitFor();
    expect((await entry()).pausedAt).toBeUndefined();
    const go = { id: 'of-go', spec: '@daily', taskType: 'go:report', taskPayload: Buffer.alloc(0), enqueueOptions: [] };
    const { broker } = world.console;
    const times = { nextEnqueueTime: Date.now(), prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('go', [{ ...go, ...times }], 600);
    await tab.open('schedules');
    await tab.sees('Some of these are of schedulers');
    expect(await tab.page.getByRole('button', { name: 'Pause: go:report' }).isDisabled()).toBe(true);
    expect(await tab.barriers()).toEqual([]);
    await broker.scheduling.clearSchedulerEntries('go');
  });

  it('deletes a queue whose name was typed', async () => {
    await put('last:task', { queue: 'doomed', taskId: 'last' });
    const tab = await visit('queues/doomed', { expected: [400, 404] }); // 404: the page's requests while the queue is deleted
    await tab.press('Delete queue');
    const dialog = tab.page.locator('dialog');
    const does = dialog.getByRole('button', { name: 'Delete queue' });
    expect(await does.isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill('doomed');
    await does.click();
    await dialog.getByRole('alert').getByText('doomed').waitFor();
    await dialog.getByRole('checkbox').check();
    await tab.confirm('Delete queue');
    await tab.sees('Queue “doomed” is deleted.');
    expect(await world.inspector.queues()).not.toContain('doomed');
  });
});
