import type { DashboardPermission } from 'nestjs-asynq/dashboard';
import { beforeEach, describe, expect, it } from 'vitest';
import { arrangeSteps } from '../support/handler-steps.js';
import { request } from '../support/messages.js';
import type { Visit } from './chromium.js';
import { openDesk } from './desk.js';
import { EVIL } from './world.js';

describe('the steps of a task', () => {
  let role: DashboardPermission = 'act';
  const desk = openDesk({ access: () => role });

  beforeEach(() => {
    role = 'act';
  });
  const rowOf = (tab: Visit, name: string) =>
    tab.page.getByRole('region', { name: 'Steps' }).getByRole('listitem').filter({ hasText: name }).first();
  const expire = () => desk.broker.clock.advance(5_000);

  it.each([
    ['desktop', { width: 1280 }],
    ['dark', { width: 1280, dark: true }],
    ['phone', { width: 360 }],
  ])('are a timeline with states, results and errors, %s', async (_name, options) => {
    await arrangeSteps(desk.broker);
    const tab = await desk.visit(options);
    await tab.open('queues/default/tasks/order-17');
    await tab.sees('They are being undone: no parcel');
    expect(await rowOf(tab, 'approved').innerText()).toMatch(/waiting\s*wait for “approval”[\s\S]*until/);
    expect(await rowOf(tab, 'ship').innerText()).toMatch(
      /retrying\s*run, 2 tries failed[\s\S]*next try[\s\S]*no parcel/,
    );
    expect(await rowOf(tab, 'rows').innerText()).toMatch(/running\s*each, 40 done/);
    expect(await rowOf(tab, 'invoice').getByRole('link').getAttribute('href')).toBe('#/queues/render/tasks/invoice-17');
    await rowOf(tab, 'capture').getByText('result').first().click();
    await tab.sees('"captureId": "c-7"');
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
  });

  it('get the signal that one of them waits for', async () => {
    await arrangeSteps(desk.broker);
    const tab = await desk.visit({ width: 360 });
    await tab.open('queues/default/tasks/order-17');
    await tab.press('Send the signal: approval');
    const dialog = tab.page.locator('dialog[open]');
    expect(await dialog.getByLabel('Name').inputValue()).toBe('approval');
    await dialog.getByLabel('Payload').fill('{"by": ');
    await tab.sees(/Not JSON/);
    expect(await dialog.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
    expect(await tab.barriers()).toEqual([]);
    expect(await tab.fits()).toBe(true);
    await dialog.getByLabel('Payload').fill('{"by": "anna"}');
    await tab.confirm('Send');
    await tab.sees('The signal is sent.');
    expire();
    await tab.sees('Signals: “approval” 1 came, 1 taken');
    expect(await rowOf(tab, 'approved').innerText()).toMatch(/done/);
    const { signals } = await desk.broker.checkpoints.read('default', 'order-17');
    expect(signals.get('approval')!.map(String)).toEqual(['{"by":"anna"}']);
  });

  it('show a signal that is refused, and why', async () => {
    await arrangeSteps(desk.broker);
    const tab = await desk.visit({ expected: [400] });
    await tab.open('queues/default/tasks/order-17');
    await tab.press('Send the signal: approval');
    await tab.page.locator('dialog[open]').getByLabel('Name').fill('a#1');
    await tab.page.locator('dialog[open]').getByRole('button', { name: 'Send', exact: true }).click();
    await tab.sees(/name of a signal "a#1" must be/);
    expect((await desk.broker.checkpoints.list('default', 'order-17')).signals.size).toBe(0);
  });

  it('take a signal of nobody who may only look', async () => {
    role = 'view';
    await arrangeSteps(desk.broker);
    const tab = await desk.visit();
    await tab.open('queues/default/tasks/order-17');
    await tab.sees('wait for “approval”');
    expect(await tab.page.getByRole('button', { name: /Send/ }).count()).toBe(0);
  });

  it('come while the page is open, page by page, with hostile names, and not for a task without any', async () => {
    await desk.broker.producer.enqueue('default', [request({ id: 'many' }), request({ id: 'none' })]);
    const { tasks } = await desk.broker.consumer.exchange('default', { settle: [], take: 2 });
    const tab = await desk.visit({ width: 360 });
    await tab.open('queues/default/tasks/none');
    await tab.sees('Payload');
    await tab.page.getByRole('region', { name: 'Steps' }).waitFor({ state: 'detached' });
    await tab.open('queues/default/tasks/many');
    const { lease } = tasks.find((task) => task.lease.id === 'many')!;
    const at = desk.broker.clock.now();
    const evil = EVIL.slice(0, 100);
    for (let n = 0; n < 120; n++) {
      const head = JSON.stringify({ n, kind: 'run', at, ended: at + 10 });
      await desk.broker.checkpoints.write(lease, `${evil}${n + 1}`, Buffer.from(`${head}\n${JSON.stringify(evil)}`));
    }
    expire();
    await tab.sees('1 to 100 of 120');
    expect(await tab.fits()).toBe(true);
    expect(await tab.barriers()).toEqual([]);
    await tab.press('Later steps');
    await tab.sees('101 to 120 of 120');
    expect(await tab.page.getByRole('button', { name: 'Later steps' }).isDisabled()).toBe(true);
  });
});
