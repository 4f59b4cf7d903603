import { beforeEach, describe, expect, it } from 'vitest';
import { DashRig } from '../../support/dash.js';
import { arrangeEveryState } from '../../support/every-state.js';
import { request } from '../../support/messages.js';

describe('the views of the dashboard', () => {
  let dash: DashRig;
  beforeEach(() => {
    dash = new DashRig();
  });

  const arrange = async (): Promise<void> => {
    await arrangeEveryState(dash.broker);
    await dash.broker.producer.enqueue('critical', [request({ queue: 'critical' })]);
    await dash.broker.administration.pauseQueue('critical');
    dash.clock.advance(90_000);
    await dash.read();
  };

  it('shows the queues with their figures', async () => {
    await dash.resize(160, 10);
    await arrange();
    expect(dash.lines.map((line) => line.trimEnd())).toEqual([
      expect.stringMatching(/^ nestjs-asynq +127\.0\.0\.1:6379 · now$/),
      expect.stringMatching(
        /^ {2}QUEUE +STATUS +SIZE +PENDING +ACTIVE +SCHEDULED +RETRY +ARCHIVED +COMPLETED +WAITING +HELD +AGGREGATING +LATENCY +MEMORY +PROCESSED +FAILED +ERRORS$/,
      ),
      expect.stringMatching(/^> critical +paused +1 +1 +0 +0 +0 +0 +0 +0 +0 +0 +1m30s +\S+ k?B +0 +0 +N\/A$/),
      expect.stringMatching(/^ {2}default +running +7 +1 +1 +1 +1 +1 +1 +0 +0 +1 +1m30s +\S+ k?B +3 +2 +66\.67%$/),
      '',
      '',
      '',
      '',
      expect.stringMatching(/^ +1 of 2$/),
      ' ? help  q quit  Enter open  P pause  / filter  r refresh  w workflows  b batches',
    ]);
  });

  it('says so when a list is empty', async () => {
    expect(dash.text).toContain('reading …');
    await dash.read();
    expect(dash.text).toContain('There are no queues');
    expect(dash.selected).toBeUndefined();
    await dash.press('enter');
    expect(dash.status).toContain('There is nothing to open.');
  });

  it('shows the states of a queue, and its last days', async () => {
    await arrange();
    await dash.press('j', 'enter');
    expect(dash.lines[0]).toContain('nestjs-asynq › default ');
    const states = dash.lines.slice(2, 11).map((line) => line.slice(2).split(/ +/).slice(0, 2));
    expect(states).toEqual([
      ['pending', '1'],
      ['active', '1'],
      ['scheduled', '1'],
      ['retry', '1'],
      ['archived', '1'],
      ['completed', '1'],
      ['waiting', '0'],
      ['held', '0'],
      ['aggregating', '1'],
    ]);
    expect(dash.text).toMatch(/aggregating +1 .* in 1 group$/m);
    expect(dash.text).toMatch(/latency +1m30s\n/);
    expect(dash.text).toMatch(/all time +3 processed, 2 failed\n/);
    expect(dash.text).toMatch(/2030-06-15 +3 +2 +66\.67%\n +2030-06-14 +0 +0 +N\/A/);
  });

  it.each([
    ['pending', /^pending +email:pending +1m30s ago +\{"id":"pending"\}$/],
    ['active', /^active +email:active +orphaned +\{"id":"active"\}$/],
    ['scheduled', /^scheduled +email:scheduled +in 58m30s +\{"id":"scheduled"\}$/],
    ['retry', /^retry +email:retry +30s ago +1\/25 +connect ECONNREFUSED +\{"id":"retry"\}$/],
    ['archived', /^archived +email:archived +1m30s ago +1\/25 +connect ECONNREFUSED +\{"id":"archived"\}$/],
    ['completed', /^completed +email:completed +1m30s ago +in 58m30s +\{"ok":true\} +\{"id":"completed"\}$/],
    ['aggregating', /^aggregating +email:aggregating +\{"id":"aggregating"\}$/],
  ])('shows of a task that is %s the columns that matter', async (state, row) => {
    await arrange();
    await dash.press('j', 'enter');
    while (!dash.selected!.startsWith(state)) await dash.press('down');
    await dash.press('enter');
    if (state === 'aggregating') {
      expect(dash.selected).toMatch(/^g +1$/);
      await dash.press('enter');
      expect(dash.lines[0]).toContain('default › aggregating › g ');
    }
    expect(dash.selected?.trimEnd()).toMatch(row);
    expect(dash.position).toBe('1 of 1');
  });

  it('shows everything about a task', async () => {
    const headers = { 'x-trace': '4711', 'x-évil': '\u001b[31m' };
    const payload = Buffer.from('{"id": 12345678901234567890, "of":[1,{"a":null}], "none":{}, "text":"a, {b\\n"}');
    await dash.broker.producer.enqueue('default', [
      {
        ...request({ id: 'order-17', type: 'order:ship', payload, headers, retention: 3600 }),
        processAt: 1_907_755_260,
      },
    ]);
    await dash.read();
    await dash.press('enter', 'j', 'j', 'enter', 'enter');
    expect(dash.lines.slice(0, 22).map((line) => line.trimEnd())).toEqual([
      expect.stringMatching(/^ nestjs-asynq › default › scheduled › order-17 /),
      '  ID            order-17',
      '  Type          order:ship',
      '  Queue         default',
      '  State         scheduled',
      '  Next process  2030-06-15T12:01:00Z (in 1m00s)',
      '  Retried       0 of 25',
      '  Timeout       30m00s',
      '  Retention     1h00m',
      '',
      expect.stringMatching(/^ {2}Headers ─+$/),
      '  x-trace: 4711',
      '  x-évil: \\x1b[31m',
      '',
      expect.stringMatching(/^ {2}Payload \(\d+ B\) ─+$/),
      '  {',
      '    "id": 12345678901234567890,',
      '    "of": [',
      '      1,',
      '      {',
      '        "a": null',
      '      }',
    ]);
    await dash.press('G');
    expect(
      dash.lines
        .slice(0, 22)
        .map((line) => line.trimEnd())
        .slice(-6),
    ).toEqual(['        "a": null', '      }', '    ],', '    "none": {},', '    "text": "a, {b\\n"', '  }']);
    await dash.press('pageup', 'g');
    expect(dash.text).toContain('  ID            order-17');
  });

  it('shows error, result and bytes that are not text', async () => {
    await arrangeEveryState(dash.broker);
    const payload = Buffer.from(Array.from({ length: 40 }, (_, i) => (i * 37) % 256));
    await dash.broker.producer.enqueue('default', [request({ id: 'bytes', payload })]);
    await dash.read();
    await dash.press('enter', 'enter');
    expect(dash.text).toMatch(/bytes +test:task +now +\(40 bytes\)/);
    await dash.press('G', 'enter');
    expect(dash.text).toContain('000000  00 25 4a 6f 94 b9 de 03 28 4d 72 97 bc e1 06 2b  .%Jo....(Mr....+');
    await dash.press('h', 'h', 'j', 'j', 'j', 'l', 'l');
    expect(dash.text).toMatch(/Last error ─+ *\n {2}connect ECONNREFUSED *\n/);
    await dash.press('escape', 'escape', 'j', 'j', 'l', 'l');
    expect(dash.text).toMatch(/Result \(11 B\) ─+ *\n {2}\{ *\n {4}"ok": true *\n {2}\}/);
    expect(dash.text).toContain('  Expires    2030-06-15T13:00:00Z (in 1h00m)\n');
  });

  it('shows a limited part of a huge payload', async () => {
    const payload = Buffer.from(`"${'é'.repeat(300_000)}"`);
    await dash.broker.producer.enqueue('default', [request({ payload })]);
    await dash.read();
    await dash.press('enter', 'enter', 'enter', 'G');
    expect(dash.text).toContain('… and 567,234 bytes more');
    await dash.press('g');
    expect(dash.text).toMatch(/"é+\n/);
  });
});
