import { describe, expect } from 'vitest';
import type { RedisDriver } from '../contract/redis-fixture.js';
import { it } from './cli-fixture.js';

async function arrange(driver: RedisDriver): Promise<string> {
  const { lease } = await driver.takeNew();
  const { checkpoints } = driver.broker;
  const at = driver.clock.now();
  const write = (name: string, head: object, result = '') =>
    checkpoints.write(lease, name, Buffer.from(`${JSON.stringify({ at, ...head })}\n${result}`));
  await write('capture', { n: 0, kind: 'run', ended: at + 1_500 }, '{"captureId":"c-7"}');
  await write('approved', { n: 1, kind: 'wait', until: at + 60_000, signal: 'approval' });
  await write('ship', { n: 2, kind: 'run', tries: 2, error: 'no\u001b[2J parcel', until: at + 5_000 });
  return lease.id;
}

const cells = (line: string | undefined): string[] | undefined => line?.split(/ {2,}/);

describe('the steps of a task', () => {
  it('are shown with their states and results', async ({ driver, lines, json }) => {
    const id = await arrange(driver);
    const [head, capture, approved, ship, ...rest] = await lines(`task steps -q default -i ${id}`);
    expect(cells(head)).toEqual(['Step', 'Kind', 'State', 'Started', 'Took', 'Until', 'Of', 'Result']);
    expect(cells(capture)).toEqual(['capture', 'run', 'done', 'now', '1.5s', '{"captureId":"c-7"}']);
    expect(cells(approved)).toEqual(['approved', 'wait', 'waiting', 'now', 'in 1m0s', 'signal approval']);
    expect(cells(ship)).toEqual(['ship', 'run', 'retrying (2 failed)', 'now', 'in 5s', String.raw`no\x1b[2J parcel`]);
    expect(rest).toEqual([]);
    expect(await json(`task steps -q default -i ${id}`)).toMatchObject({
      total: 3,
      signals: [],
      undoing: null,
      steps: [
        { name: 'capture', state: 'done', result: { captureId: 'c-7' }, signal: null, wakeAt: null },
        { name: 'approved', state: 'waiting', signal: 'approval', endedAt: null },
        { name: 'ship', state: 'retrying', tries: 2 },
      ],
    });
  });

  it('come page by page, may be none, or those of no task', async ({ driver, run, json }) => {
    const id = await arrange(driver);
    const page = await run(`task steps -q default -i ${id} --size 1 --page 2`);
    expect(page).toMatchObject({ status: 0, stderr: '1 of 3 steps: --page, --size\n' });
    expect(page.stdout).toContain('approved');
    const without = await driver.add();
    expect(await run(`task steps -q default -i ${without}`)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('has no steps') as string,
    });
    expect(await json(`task steps -q default -i ${without}`)).toBeNull();
    expect(await run('task steps -q default -i none')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('task not found') as string,
    });
  });
});

describe('a signal', () => {
  it('is sent with and without a payload', async ({ driver, lines }) => {
    const id = await arrange(driver);
    const sent = ['task', 'signal', 'approval', '-q', 'default', '-i', id];
    expect(await lines([...sent, '-l', '{"by": "anna"}'])).toEqual([
      `Task "${id}" of queue "default" has the signal "approval"`,
    ]);
    expect(await lines(sent)).toHaveLength(1);
    const { signals } = await driver.broker.checkpoints.read('default', id);
    expect(signals.get('approval')!.map(String)).toEqual(['{"by":"anna"}', '']);
    const shown = await lines(`task steps -q default -i ${id}`);
    expect(cells(shown[2])).toEqual(['approved', 'wait', 'done', 'now', 'signal approval', '{"by":"anna"}']);
    expect(shown.at(-1)).toBe('Signal "approval": 2 came, 1 taken by waits');
  });

  it('is refused for no task, and with what is no JSON', async ({ driver, run }) => {
    const id = await arrange(driver);
    const to = (task: string, ...more: string[]) =>
      run(['task', 'signal', 'approval', '-q', 'default', '-i', task, ...more]);
    expect(await to('none')).toMatchObject({ status: 1, stderr: expect.stringContaining('task not found') as string });
    expect(await to(id, '-l', '{by}')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('It must be JSON') as string,
    });
  });
});
