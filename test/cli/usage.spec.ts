import { describe, expect, it } from 'vitest';
import { runInProcess } from '../support/command-line.js';

/** No server listens there: an error on the line must be reported before any connection. */
const AWAY = ['-u', '127.0.0.1:1'];
const enqueue = ['task', 'enqueue', '-t', 'x', '-l', '{}'];

const WRONG: [args: string[], message: RegExp][] = [
  [[], /Usage: nestjs-asynq/],
  [['queue'], /Usage: nestjs-asynq queue/],
  [['queue', 'lst'], /unknown command 'lst'\s+\(Did you mean one of list, ls\?\)/],
  [['qeue'], /unknown command 'qeue'\s+\(Did you mean queue\?\)/],
  [['stats', '--jsn'], /unknown option '--jsn'\s+\(Did you mean --json\?\)/],
  [['stats', 'everything'], /too many arguments/],
  [['queue', 'inspect'], /missing required argument 'queue'/],
  [['task', 'list', '-s', 'pending'], /required option '-q, --queue <name>' not specified/],
  [['task', 'list', '-q', 'a', '-s', 'blocked'], /'blocked' is invalid. Allowed choices are active, pending/],
  [
    ['task', 'runall', '-q', 'a', '-s', 'pending'],
    /Allowed choices are scheduled, retry, archived, completed, aggregating/,
  ],
  [
    ['task', 'list', '-q', 'a', '-s', 'retry', '--page', '0'],
    /'0' is invalid. It must be a whole number of at least 1/,
  ],
  [['task', 'list', '-q', 'a', '-s', 'retry', '--size', '-3'], /'-3' is invalid/],
  [
    ['task', 'list', '-q', 'a', '-s', 'retry', '--page', '2', '--cursor', 'x'],
    /'--cursor <cursor>' cannot be used with/,
  ],
  [['task', 'list', '-q', 'a', '-s', 'retry', '--scan', '7'], /--scan is for a search/],
  [['task', 'list', '-q', 'a', '-s', 'retry', '--page', '2', '--type', 'x'], /a search has no pages/],
  [[...enqueue, '--timeout', '5'], /'5' is invalid. time: missing unit in duration "5"; write 90s/],
  [[...enqueue, '--deadline', 'tomorrow'], /'tomorrow' is invalid. It must be a time in RFC 3339/],
  [[...enqueue, '--deadline', '2026-02-30T00:00:00Z'], /'2026-02-30T00:00:00Z' is invalid/],
  [[...enqueue, '--deadline', '2026-02-03'], /RFC 3339/],
  [[...enqueue, '--retry', 'x'], /It must be a whole number of at least 0/],
  [[...enqueue, '--process_in', '1s', '--process_at', '2026-02-03T00:00:00Z'], /cannot be used with/],
  [['stats', '-n', 'x'], /--db is "x"; it must be a whole number of at least 0/],
];

describe('a wrong command line', () => {
  it.each(WRONG)('%j ends with status 2 and the reason', async (args, message) => {
    const { status, stdout, stderr } = await runInProcess(args.length > 1 ? [...args, ...AWAY] : args);
    expect(stderr).toMatch(message);
    expect([status, stdout]).toEqual([2, '']);
  });
});

describe('an error', () => {
  it('sends no escape sequence of the arguments to the terminal', async () => {
    const { stderr } = await runInProcess(['task', 'list', '-q', 'a', '-s', '\u001b[2Jpending']);
    expect(stderr).toContain("'\\x1b[2Jpending' is invalid");
  });

  it('is one line without escape sequences', async () => {
    const { status, stderr } = await runInProcess(['stats', '--config', '/none\nerror: two\u001b[2J']);
    expect(status).toBe(2);
    expect(stderr.split('\n')).toEqual([expect.stringContaining('/none\\nerror: two\\x1b[2J'), '']);
  });
});

describe('a command line', () => {
  it.each([[['version']], [['--version']]])('%j prints the version', async (args) => {
    expect(await runInProcess(args)).toEqual({ status: 0, stdout: 'nestjs-asynq version 1.2.3\n', stderr: '' });
  });

  it("accepts global flags anywhere, the last one winning, and switches in Go's notation", async () => {
    for (const args of [
      ['-n', 'x', 'queue', 'list'],
      ['queue', '-n', 'x', 'list'],
      ['queue', 'list', '--db=x'],
      ['-n', '1', 'queue', '-n', '2', 'list', '-nx'],
    ])
      expect((await runInProcess(args)).stderr).toContain('--db is "x"');
    const { stderr } = await runInProcess(['--insecure=true', 'queue', 'list', '--tls=false', ...AWAY]);
    expect(stderr).toContain('--insecure is for TLS, and there is none');
  });

  it('accepts a value that looks like a flag', async () => {
    const { stderr, status } = await runInProcess(['task', 'enqueue', '-t', 'x', '-l', '-n', '--retention', 'y']);
    expect([status, stderr]).toEqual([2, expect.stringContaining("'y' is invalid")]);
  });

  it('names the address and the remedy when Redis is unavailable', async () => {
    const { status, stdout, stderr } = await runInProcess(['queue', 'ls', ...AWAY]);
    const started = performance.now(); // all is loaded now
    await runInProcess(['queue', 'ls', ...AWAY]);
    expect(performance.now() - started).toBeLessThan(4_500); // a server would be waited for longer
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^error: no connection to Redis at 127\.0\.0\.1:1: connect ECONNREFUSED .*--uri, ASYNQ_URI/);
  });
});
