import { describe, expect } from 'vitest';
import { arrangeAttempts } from '../support/attempts.js';
import { it } from './cli-fixture.js';

const cells = (line: string | undefined): string[] | undefined => line?.split(/ {2,}/);

describe('the attempts of a task', () => {
  it('are shown with their errors, and their stacks on request', async ({ driver, lines, run, json }) => {
    const id = await arrangeAttempts(driver.broker);
    const table = await run(`task attempts -q default -i ${id}`);
    const [head, third, fourth, fifth, ...rest] = table.stdout.trimEnd().split('\n');
    expect(cells(head)).toEqual(['Attempt', 'Outcome', 'Started', 'Ended', 'Took', 'Server', 'Error']);
    expect(cells(third)).toEqual(['3', 'failed', '1m1s ago', '1m0s ago', '1.5s', 'web-1:4242', 'no parcel']);
    expect(cells(fourth)).toEqual(['4', 'failed', '30s ago', '30s ago', '0s', 'web-1:4242', 'no <b>box</b>']);
    expect(cells(fifth)).toEqual(['5', 'crashed', '5s ago', 'web-2:7', 'asynq: task lease expired']);
    expect(rest).toEqual([]);
    expect(table.stderr).toBe('Of 2 of 5 attempts nothing is known any more\n');
    const { stdout } = await run(`task attempts -q default -i ${id} --stack`);
    expect(stdout).toContain(
      '\nAttempt 3\nError: no parcel\nat ship (/app/ship.js:17:5)\ncaused by: TypeError: no box\n',
    );
    expect(await json(`task attempts -q default -i ${id}`)).toMatchObject({
      total: 5,
      attempts: [
        { number: 3, outcome: 'failed', duration: 1_500, startedAt: expect.stringMatching(/Z$/) as string },
        { number: 4, stack: null },
        { number: 5, outcome: 'crashed', startedAt: null, duration: null, server: 'web-2:7' },
      ],
    });
    expect(await lines(`task inspect -q default -i ${id}`)).toContainEqual(expect.stringMatching(/^Enqueued: +20/));
  });

  it('may be none, and those of no task are not found', async ({ driver, run, json }) => {
    const id = await driver.add();
    expect(await run(`task attempts -q default -i ${id}`)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('has no attempt that failed') as string,
    });
    expect(await json(`task attempts -q default -i ${id}`)).toEqual({ total: 0, attempts: [] });
    expect(await run('task attempts -q default -i none')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('task not found') as string,
    });
  });
});
