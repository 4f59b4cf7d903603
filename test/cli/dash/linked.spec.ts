import { beforeEach, describe, expect, it } from 'vitest';
import { DashRig } from '../../support/dash.js';
import { arrangeRunsAndBatches } from '../../support/every-state.js';

describe('runs and batches on the dashboard', () => {
  let dash: DashRig;
  beforeEach(async () => {
    dash = new DashRig({ columns: 120 });
    await arrangeRunsAndBatches(dash.broker);
    dash.clock.advance(90_000);
    await dash.read();
  });

  const rows = (): string[][] =>
    dash.lines
      .slice(2, -2)
      .filter((line) => line.trim() !== '')
      .map((line) => line.slice(2).trim().split(/ {2,}/));

  it('lists runs, and opens one', async () => {
    await dash.press('w');
    expect(dash.lines[0]).toContain('workflows');
    expect(dash.lines[1]).toMatch(/RUN +STATE +STEPS +OPEN +FAILED +STARTED +ENDED +QUEUE/);
    const [failed, open] = rows().sort();
    expect(failed).toEqual(['run-failed', 'failed', '2', '0', '1', '1m30s ago', '1m30s ago', 'default']);
    expect(open).toEqual(['run-open', 'running', '2', '2', '0', '1m30s ago', 'default']);
    while (!dash.selected?.startsWith('run-open')) await dash.press('j');
    await dash.press('enter');
    expect(dash.lines[0]).toContain('run-open');
    expect(rows()).toEqual([
      ['pay', 'ready (late)', '1m30s', 'step:pay'],
      ['ship', 'waiting', 'step:ship'],
    ]);
    await dash.press('enter');
    expect(dash.status).toContain('nestjs-asynq task inspect -q steps run-open');
    await dash.press('j', 'enter');
    expect(dash.status).toBe('The step has no task.');
    await dash.broker.workflows.cancel('default', 'run-open', 'why');
    await dash.press('r');
    expect(rows()[1]).toEqual(['ship', 'cancelled', 'step:ship', 'why']);
    await dash.broker.workflows.delete('default', 'run-open');
    await dash.press('r');
    expect(dash.text).toContain('The run was deleted.');
    await dash.press('escape', 'escape');
    expect(dash.lines[1]).toContain('QUEUE');
  });

  it('lists batches, of all queues or of one', async () => {
    await dash.press('b');
    expect(dash.lines[1]).toMatch(/BATCH +STATE +TOTAL +PENDING +SUCCEEDED +FAILED +OPENED +ENDED +QUEUE/);
    expect(rows().map(([name, state]) => `${name} ${state}`)).toEqual(['import succeeded', 'import open']);
    await dash.press('enter');
    expect(dash.status).toContain('nestjs-asynq batch inspect -q default batch-');
    await dash.press('w');
    expect(rows()).toHaveLength(2);
    await dash.press('escape');
    expect(dash.lines[1]).toContain('LATENCY');
    while (!dash.selected?.startsWith('steps')) await dash.press('j');
    await dash.press('enter', 'b');
    expect(dash.text).toContain('No batches.');
    await dash.press('w');
    expect(dash.text).toContain('No runs of workflows.');
  });

  it('changes neither', async () => {
    await dash.press('w', 'D');
    expect(dash.status).toContain('nestjs-asynq workflow');
    await dash.press('P');
    expect(dash.status).toBe('Open a queue first.');
    await dash.press('space');
    expect(dash.status).toBe('Only tasks can be marked.');
  });
});
