import { describe, expect } from 'vitest';
import { arrangeRunsAndBatches } from '../support/every-state.js';
import { it as base } from './cli-fixture.js';

/** Runs `run-open` and `run-failed`, batches `batch-open` and `batch-ended`, all kept by `default`. */
const it = base.extend('arranged', { auto: true }, async ({ driver }) => {
  await arrangeRunsAndBatches(driver.broker);
  driver.clock.advance(90_000);
});

describe('the commands of workflows', () => {
  it('list runs', async ({ lines, json }) => {
    const [head, ...rows] = await lines('workflow ls');
    expect(head?.split(/ {2,}/)).toEqual(['ID', 'Queue', 'State', 'Steps', 'Open', 'Failed', 'Started', 'Took']);
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 6).join(' ')).sort()).toEqual([
      'run-failed default failed 2 0 1',
      'run-open default running 2 2 0',
    ]);
    expect(await json('workflow list -q default --size 1 --page 2')).toHaveLength(1);
    expect(await json('workflow list -q steps')).toEqual([]);
  });

  it('show a run with its steps, and what is late', async ({ lines, json, run }) => {
    const shown = await lines('workflow inspect -q default run-open');
    expect(shown.slice(-2).map((line) => line.split(/ {2,}/).filter(Boolean))).toEqual([
      ['pay', 'ready (late)', '1m30s', 'step:pay'],
      ['ship', 'waiting', 'step:ship'],
    ]);
    expect(await json('workflow inspect -q default run-open')).toMatchObject({
      id: 'run-open',
      state: 'running',
      endedAt: null,
      graph: [
        { name: 'pay', state: 'ready', lateSince: expect.stringMatching(/Z$/) as string },
        { name: 'ship', after: ['pay'], lateSince: null },
      ],
    });
    expect(await run('workflow inspect -q default none')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('none') as string,
    });
  });

  it('cancel, retry and delete runs', async ({ lines, json, run }) => {
    expect(await lines('workflow cancel -q default run-open --reason withdrawn')).toEqual([
      'Run "run-open" is cancelled',
    ]);
    expect(await lines('workflow cancel -q default run-open')).toEqual(['Run "run-open" was over']);
    expect(await json('workflow inspect -q default run-open')).toMatchObject({ reason: 'withdrawn' });
    expect(await lines('workflow retry -q default run-failed')).toEqual([
      'Run "run-failed" is running: 1 step runs again',
    ]);
    expect((await run('workflow delete -q default run-failed --yes')).status).toBe(1);
    expect(await lines('workflow rm -q default run-open --yes')).toEqual(['Run "run-open" is deleted']);
    expect(await json('workflow ls')).toMatchObject([{ id: 'run-failed', state: 'running' }]);
  });
});

describe('the commands of batches', () => {
  it('list and show batches', async ({ lines, json }) => {
    const [head, ...rows] = await lines('batch ls');
    expect(head?.split(/ {2,}/).slice(0, 5)).toEqual(['ID', 'Queue', 'Name', 'State', 'Total']);
    const states = rows.map((row) => row.split(/ {2,}/)).map(([id, , name, state]) => `${id} ${name} ${state}`);
    expect(states.sort()).toEqual(['batch-ended import succeeded', 'batch-open import open']);
    expect(await lines('batch inspect -q default batch-open')).toContain('State:     open');
    expect(await json('batch inspect -q default batch-ended')).toMatchObject([
      { id: 'batch-ended', state: 'succeeded' },
    ]);
  });

  it('close and delete batches', async ({ lines, json, run }) => {
    expect((await run('batch delete -q default batch-open')).status).toBe(1);
    expect(await lines('batch close -q default batch-open')).toEqual(['Batch "batch-open" is closed']);
    expect(await lines('batch rm -q default batch-open batch-ended')).toEqual([
      'Batch "batch-open" is deleted',
      'Batch "batch-ended" is deleted',
    ]);
    expect(await json('batch list')).toEqual([]);
  });
});

describe('completion', () => {
  it('knows runs and batches, of all queues or of the one that is named', async ({ driver, lines }) => {
    const after = async (words: string): Promise<string[]> => {
      const line = `__complete -- -u 127.0.0.1:${driver.server.port} ${words}`;
      return (await lines(line)).map((one) => one.split('\t')[0]!);
    };
    expect(await after('workflow inspect run')).toEqual(['run-failed', 'run-open']);
    expect(await after('workflow cancel -q default run-o')).toEqual(['run-open']);
    expect(await after('workflow retry -q steps run')).toEqual([]);
    expect(await after('batch close -q default batch')).toEqual(['batch-ended', 'batch-open']);
  });
});
