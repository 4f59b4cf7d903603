import { AsynqInspector } from 'nestjs-asynq';
import { describe, expect, it } from 'vitest';
import { taskIdOfStep, type NewStep } from '../../lib/broker/workflows.js';
import { request } from '../support/messages.js';
import { openDesk } from './desk.js';
import { EVIL } from './world.js';

/* Runs of workflows as pictures and lists, and batches with their progress. */

const desk = openDesk({ access: 'destroy' });

let runs = 0;

/** A run in the queue `orders`. Names of steps, with what they wait for. */
async function start(graph: Readonly<Record<string, readonly string[]>>): Promise<string> {
  const id = `order/${++runs}`;
  const steps = Object.entries(graph).map(([name, after]): NewStep => ({
    name,
    request: request({ queue: 'steps', id: taskIdOfStep(id, name), type: `order:${name.slice(0, 20)}` }),
    after,
    onFailure: 'cancel',
    optional: false,
    delay: 0,
  }));
  const run = { id, name: 'order', steps, retention: 3600, deadline: undefined };
  expect(await desk.broker.workflows.start('orders', [run])).toMatchObject({ statuses: ['started'] });
  return id;
}

const ORDER = { pay: [], receipt: ['pay'], invoice: ['pay'], close: ['receipt', 'invoice'] };
const routeOf = (id: string): string => `workflows/orders/${encodeURIComponent(id)}`;

/** Layers of `width` steps; each waits for two of the layer before. */
function layers(count: number, width: number): Record<string, string[]> {
  const graph: Record<string, string[]> = {};
  for (let layer = 0; layer < count; layer++) {
    for (let n = 0; n < width; n++) {
      const before = [n, (n + 1) % width].map((other) => `step ${layer - 1}.${other}`);
      graph[`step ${layer}.${n}`] = layer === 0 ? [] : [...new Set(before)];
    }
  }
  return graph;
}

describe('a run of a workflow', () => {
  it('is found in the list, and drawn in layers', async () => {
    const id = await start(ORDER);
    const seen = await desk.visit();
    await seen.open('workflows');
    await seen.page.getByRole('link', { name: id }).click();
    const boxes = await Promise.all(
      Object.keys(ORDER).map(async (name) => {
        const step = seen.page.locator(`[data-step="${name}"] > rect`).first();
        await step.waitFor();
        return (await step.boundingBox())!;
      }),
    );
    const [pay, receipt, invoice, close] = boxes.map(({ x }) => x) as [number, number, number, number];
    expect(pay).toBeLessThan(receipt);
    expect(Math.abs(receipt - invoice)).toBeLessThan(1);
    expect(invoice).toBeLessThan(close);
    expect(await seen.page.locator('.graph .line').count()).toBe(4);
    const rows = seen.page.locator('tr[data-row]');
    expect(await rows.count()).toBe(4);
    expect(await rows.nth(3).innerText()).toMatch(/close[\s\S]*waiting[\s\S]*receipt, invoice/);
  });

  it('marks a step that no server takes as late', async () => {
    const id = await start(ORDER);
    const seen = await desk.visit();
    await seen.open(routeOf(id));
    await seen.page.locator('[data-step=pay]:not(.late)').waitFor();
    desk.broker.clock.advance(90_000);
    await seen.page.locator('[data-step=pay].late').waitFor();
    expect(await seen.page.locator('[data-step=pay] .step-detail').textContent()).toContain('ready, late');
    const flag = seen.page.locator('tr[data-row]').first().getByText('late', { exact: true });
    expect(await flag.getAttribute('title')).toContain('no server has taken its task for');
    expect(await seen.page.locator('.late').count()).toBe(1);
  });

  it('lives: a step that fails is shown with what is cancelled for it, and is retried', async () => {
    const id = await start(ORDER);
    const seen = await desk.visit();
    await seen.open(routeOf(id));
    await seen.page.locator('[data-step=pay].color-ready').waitFor();
    await new AsynqInspector(desk.broker).archiveTask('steps', taskIdOfStep(id, 'pay'));
    desk.broker.clock.advance(2_000);
    await seen.page.locator('[data-step=pay].color-failed').waitFor();
    await seen.page.locator('[data-step=close].color-cancelled').waitFor();
    await seen.page.getByRole('button', { name: 'Retry failed steps' }).click();
    desk.broker.clock.advance(2_000);
    await seen.page.locator('[data-step=pay].color-ready').waitFor();
    expect((await desk.broker.workflows.run('orders', id))!.state).toBe('running');
  });

  it('is cancelled, then deleted, after a question', async () => {
    const id = await start(ORDER);
    const seen = await desk.visit({ expected: [404] }); // the page's requests while the run is deleted
    await seen.open(routeOf(id));
    await seen.page.getByRole('button', { name: 'Cancel…' }).click();
    await seen.page.getByRole('button', { name: 'Cancel the run' }).click();
    await seen.page.getByRole('button', { name: 'Delete…' }).click();
    await seen.page.getByRole('button', { name: 'Delete the run' }).click();
    await seen.page.getByRole('heading', { name: 'Workflows' }).waitFor();
    expect(await desk.broker.workflows.run('orders', id)).toBeUndefined();
  });

  it.each([
    ['3', 3, 1],
    ['30', 6, 5],
    ['300', 20, 15],
  ])('of %s steps is shown whole, and moves and zooms by keys and pointer', async (_, count, width) => {
    const id = await start(layers(count, width));
    const seen = await desk.visit();
    await seen.open(routeOf(id));
    const graph = seen.page.locator('.graph');
    await graph.locator('[data-step]').first().waitFor();
    expect(await graph.locator('[data-step]').count()).toBe(count * width);
    const frame = (await graph.boundingBox())!;
    const box = async () => (await graph.locator('[data-step="step 0.0"] > rect').first().boundingBox())!;
    const last = (await graph
      .locator(`[data-step="step ${count - 1}.${width - 1}"] > rect`)
      .first()
      .boundingBox())!;
    const first = await box();
    for (const one of [first, last]) {
      expect(one.x).toBeGreaterThanOrEqual(frame.x);
      expect(one.x + one.width).toBeLessThanOrEqual(frame.x + frame.width);
      expect(one.y + one.height).toBeLessThanOrEqual(frame.y + frame.height);
    }
    await graph.focus();
    await seen.page.keyboard.press('+');
    const larger = await box();
    expect(larger.width).toBeGreaterThan(first.width * 1.2);
    await seen.page.keyboard.press('ArrowRight');
    expect((await box()).x).toBeLessThan(larger.x - 50);
    await seen.page.keyboard.press('0');
    expect((await box()).width).toBeCloseTo(first.width, 0);
    const middle = { x: frame.x + frame.width / 2, y: frame.y + frame.height - 20 };
    await seen.page.mouse.move(middle.x, middle.y);
    await seen.page.mouse.down();
    await seen.page.mouse.move(middle.x + 40, middle.y, { steps: 4 });
    await seen.page.mouse.up();
    expect((await box()).x).toBeCloseTo(first.x + 40, -1);
  });

  it('has names that cannot harm the page', async () => {
    const id = await start({ [EVIL]: [], after: [EVIL] });
    const seen = await desk.visit();
    await seen.open(routeOf(id));
    await seen.sees('alert(1)');
    expect(await seen.fits()).toBe(true);
  });
});

describe('batches', () => {
  it('show their progress, and are closed and deleted', async () => {
    const batch = await desk.web.client.openBatch({ name: 'import 42', queue: 'orders' });
    await batch.add('row', [1, 2, 3, 4], { queue: 'rows' });
    await new AsynqInspector(desk.broker).deleteTask('rows', `${batch.id}~0`);
    const seen = await desk.visit({ expected: [404] }); // the page's requests while the batch is deleted
    await seen.open('batches');
    const row = seen.page.locator('tr[data-row]', { hasText: 'import 42' });
    await row.getByText('25%').waitFor();
    await row.getByRole('button', { name: 'Close import 42' }).click();
    desk.broker.clock.advance(2_000);
    await row.getByText('closed').waitFor();
    for (const n of [1, 2, 3]) await new AsynqInspector(desk.broker).deleteTask('rows', `${batch.id}~${n}`);
    desk.broker.clock.advance(2_000);
    await row.getByRole('button', { name: 'Delete import 42' }).click();
    desk.broker.clock.advance(2_000);
    await seen.sees('No batches');
    expect(await desk.broker.batches.batches('orders', { offset: 0, size: 10 })).toEqual([]);
  });
});

describe('members of a batch that have failed', () => {
  it('are one click away, in the queue where they are', async () => {
    const batch = await desk.web.client.openBatch({ name: 'import 42', queue: 'orders' });
    await batch.add('row', [1, 2], { queue: 'rows' });
    await batch.add('row', [3]);
    await new AsynqInspector(desk.broker).archiveTask('rows', `${batch.id}~1`);
    const seen = await desk.visit();
    await seen.open('batches');
    const links = seen.page.getByRole('link', { name: /^Archived members/ });
    await links.first().waitFor();
    expect(await links.count()).toBe(1);
    await links.click();
    await seen.page.locator('tr[data-row]', { hasText: `${batch.id}~1` }).waitFor();
    expect(await seen.page.locator('tr[data-row]').count()).toBe(1);
    expect(seen.page.url()).toContain('queues/rows/archived');
  });
});

describe('the pages of workflows and batches', () => {
  it.each([1280, 1024])('show every column of a batch, %i pixels wide', async (width) => {
    const batch = await desk.web.client.openBatch({ name: 'import of articles, 2026-11', queue: 'orders' });
    await batch.add('row', ['one']);
    await new AsynqInspector(desk.broker).deleteTask('default', `${batch.id}~0`);
    await batch.close();
    const seen = await desk.visit({ width });
    await seen.open('batches');
    const row = seen.page.locator('tr[data-row]').first();
    for (const part of [row.getByText('completed'), row.getByText('orders'), row.getByRole('button')]) {
      await part.scrollIntoViewIfNeeded();
      const [inner, cell] = await Promise.all(
        [part, part.locator('xpath=ancestor::td')].map((one) => one.boundingBox()),
      );
      expect(inner!.x + inner!.width).toBeLessThanOrEqual(cell!.x + cell!.width);
    }
    expect(await seen.fits()).toBe(true);
  });

  it.each([false, true])('have no barrier that axe finds, dark: %s', async (dark) => {
    const id = await start(ORDER);
    await new AsynqInspector(desk.broker).archiveTask('steps', taskIdOfStep(id, 'pay'));
    await desk.web.client.openBatch({ name: 'import 42' });
    const seen = await desk.visit({ dark });
    for (const route of ['workflows', routeOf(id), 'batches']) {
      await seen.open(route);
      await seen.page.locator('tr[data-row]').first().waitFor();
      expect(await seen.barriers(dark ? ['color-contrast'] : undefined), route).toEqual([]);
    }
  });

  it('fit on a phone, where a run is a list', async () => {
    const id = await start(ORDER);
    await desk.web.client.openBatch({ name: 'import 42' });
    const seen = await desk.visit({ width: 360 });
    for (const route of ['workflows', routeOf(id), 'batches']) {
      await seen.open(route);
      await seen.page.locator('tr[data-row]').first().waitFor();
      expect(await seen.fits(), route).toBe(true);
    }
    await seen.open(routeOf(id));
    await seen.page.locator('tr[data-row]').nth(3).waitFor();
    expect(await seen.page.locator('.graph').isVisible()).toBe(false);
  });
});
