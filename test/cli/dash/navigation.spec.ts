import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryOf } from '../../../lib/cli/dash/query.js';
import { widthOf } from '../../../lib/cli/output/text.js';
import { DashRig } from '../../support/dash.js';
import { request } from '../../support/messages.js';

describe('navigation in the dashboard', () => {
  let dash: DashRig;
  beforeEach(() => {
    dash = new DashRig({ columns: 80, rows: 14 }); // ten rows of a list
  });

  const ids = (): string[] => dash.lines.slice(2, -2).flatMap((line) => /^. (t-\d+)/.exec(line)?.[1] ?? []);
  const name = (number: number): string => `t-${String(number).padStart(3, '0')}`;
  const arrange = async (count: number, groupKey = ''): Promise<void> => {
    const tasks = Array.from({ length: count }, (_, i) =>
      request({ id: name(i), type: i % 2 ? 'mail:odd' : 'mail:even', groupKey }),
    );
    const processAt = groupKey ? undefined : 1_907_760_000;
    await dash.broker.producer.enqueue(
      'default',
      tasks.map((task) => ({ ...task, ...(processAt && { processAt }) })),
    );
    await dash.read();
    await dash.press('enter', ...(groupKey ? ['G', 'enter'] : ['j', 'j']), 'enter');
  };

  it('turns pages by cursor, down and back up', async () => {
    await arrange(25);
    expect(ids()).toEqual(Array.from({ length: 10 }, (_, i) => name(i)));
    await dash.press('pagedown');
    expect([dash.selected?.slice(0, 5), dash.position]).toEqual(['t-009', '10 of 25']);
    await dash.press('pagedown');
    expect([ids()[0], dash.selected?.slice(0, 5), dash.position]).toEqual(['t-010', 't-010', '11 of 25']);
    await dash.press('G');
    expect([ids(), dash.selected?.slice(0, 5), dash.position]).toEqual([
      ['t-020', 't-021', 't-022', 't-023', 't-024'],
      't-024',
      '25 of 25',
    ]);
    await dash.press('down', 'pagedown');
    expect(dash.position).toBe('25 of 25');
    for (let i = 0; i < 5; i++) await dash.press('up');
    expect([ids()[0], dash.selected?.slice(0, 5), dash.position]).toEqual(['t-010', 't-019', '20 of 25']);
    await dash.press('g');
    expect([ids()[0], dash.selected?.slice(0, 5), dash.position]).toEqual(['t-000', 't-000', '1 of 25']);
    await dash.press('up', 'pageup');
    expect(dash.position).toBe('1 of 25');
  });

  it('skips no task while tasks before it disappear', async () => {
    await arrange(25);
    await dash.press('pagedown');
    for (let i = 0; i < 10; i++) await dash.inspector.deleteTask('default', name(i));
    await dash.press('pagedown');
    expect(ids()[0]).toBe('t-010');
  });

  it('counts up when the total is unknown', async () => {
    await arrange(25, 'g');
    expect([ids().length, dash.position]).toEqual([10, '1 of 10+']);
    await dash.press('pagedown', 'down');
    expect([ids()[0], dash.position]).toEqual(['t-010', '11 of 20+']);
    await dash.press('pagedown', 'down', 'G');
    expect(dash.position).toBe('25 of 25');
  });

  it('finds tasks by type, id, payload and error, and continues a search', async () => {
    await arrange(25);
    await dash.press('/');
    expect(dash.lines.at(-2)).toBe(' / ▏');
    await dash.type('mail:oddd');
    await dash.press('backspace');
    expect(dash.lines.at(-2)).toBe(' / mail:odd▏');
    await dash.press('enter');
    expect([ids(), dash.position]).toEqual([
      Array.from({ length: 10 }, (_, i) => name(2 * i + 1)),
      '/mail:odd · 1 of 12 found in 25',
    ]);
    await dash.press('G');
    expect(dash.selected).toMatch(/^t-023/);
    await dash.press('/');
    await dash.type(' id=t-00');
    await dash.press('enter');
    expect(ids()).toEqual(['t-001', 't-003', 't-005', 't-007', 't-009']);
    await dash.press('/', 'ctrl-u', 'x', 'escape');
    expect(ids()).toHaveLength(5);
    await dash.press('/', 'ctrl-u', 'p', 'enter');
    expect(dash.text).toContain('Nothing matches the filter. Esc removes it.');
    await dash.press('escape');
    expect([ids().length, dash.position]).toEqual([10, '1 of 25']);
    await dash.press('escape');
    expect(dash.selected).toMatch(/^scheduled/);
  });

  it('searches a thousand tasks at a time, and the next thousand further down', async () => {
    await arrange(1_100);
    await dash.press('/');
    await dash.type('id=t-05');
    await dash.press('enter');
    expect([ids().length, dash.position]).toEqual([10, '/id=t-05 · 1 of 10 found in 1,000, more below']);
    await dash.press('G', 'down');
    expect([ids(), dash.position]).toEqual([[], expect.stringContaining('0 of 0 found in 100')]);
    await dash.press('up');
    expect(dash.selected).toMatch(/^t-059/);
  });

  it('filters queues by name', async () => {
    for (const queue of ['mail', 'email', 'report']) await dash.broker.producer.enqueue(queue, [request({ queue })]);
    await dash.read();
    await dash.press('/', 'm', 'a', 'i', 'l', 'enter');
    expect(dash.lines.slice(2, 5).map((line) => line.split(/ +/)[1])).toEqual(['email', 'mail', undefined]);
    expect(dash.position).toBe('/mail · 1 of 2');
    await dash.press('j', 'enter', 'escape');
    expect(dash.selected).toMatch(/^mail/);
    await dash.press('escape');
    expect(dash.position).toMatch(/^\d of 3$/);
  });

  it('reads the figures of only the queues on the screen', async () => {
    for (let i = 0; i < 30; i++) await dash.broker.producer.enqueue(name(i), [request({ queue: name(i) })]);
    const asked = vi.spyOn(dash.inspector, 'getQueueInfo');
    await dash.read();
    expect(asked.mock.calls.flat()).toEqual(Array.from({ length: 10 }, (_, i) => name(i)));
    asked.mockClear();
    await dash.press('G');
    expect(new Set(asked.mock.calls.flat())).toEqual(new Set(Array.from({ length: 10 }, (_, i) => name(20 + i))));
    expect(dash.selected).toMatch(/^t-029 +running +1 /);
    expect(dash.text).not.toContain('…');
  });

  it('keeps the selected row while others come and go', async () => {
    await arrange(8);
    await dash.press('j', 'j', 'j');
    await dash.inspector.deleteTask('default', name(0));
    await dash.read();
    expect(dash.selected).toMatch(/^t-003/);
    expect(dash.position).toBe('3 of 7');
  });

  it('returns to the same position in the queue', async () => {
    await arrange(3);
    await dash.press('enter', 'h', 'h');
    expect(dash.selected).toMatch(/^scheduled +3/);
    await dash.press('h', 'h', 'h');
    expect(dash.lines[0]).toMatch(/^ nestjs-asynq +127/);
  });

  it.each([
    [200, 60],
    [80, 24],
    [40, 10],
    [20, 6],
    [10, 4],
    [3, 2],
    [1, 1],
  ])('fills exactly a screen of %i columns and %i rows', async (columns, rows) => {
    const payload = Buffer.from(`{"日本":"${'語'.repeat(300)}"}`);
    await dash.broker.producer.enqueue('名前', [request({ queue: '名前', id: '識別子'.repeat(20), payload })]);
    await dash.resize(columns, rows);
    for (const key of ['r', 'enter', 'enter', 'space', 'D', 'n', '/', 'x', 'escape', 'enter', 'G', 'pageup', '?']) {
      await dash.press(key);
      expect(dash.lines, key).toHaveLength(rows);
      for (const line of dash.lines) expect(widthOf(line), `${key}: ${line}`).toBeLessThanOrEqual(columns);
    }
  });

  it('keeps the selected row on a screen that becomes smaller', async () => {
    await arrange(10);
    await dash.press('G');
    await dash.resize(80, 7);
    expect(dash.selected).toMatch(/^t-009/);
    await dash.press('k');
    expect(dash.selected).toMatch(/^t-008/);
    await dash.press('escape', 'escape');
    expect(dash.selected).toMatch(/^default/);
  });

  it('shows the keys, and closes the help at any key', async () => {
    await arrange(3);
    await dash.resize(80, 24);
    await dash.press('?');
    for (const key of ['R', 'A', 'D', 'C', 'P', 'Space', '/', 'q', 'g G']) expect(dash.text).toContain(`\n  ${key} `);
    expect(dash.take({ type: 'key', key: 'q' }).end).toBeUndefined();
    expect(dash.selected).toMatch(/^t-000/);
    expect(dash.take({ type: 'key', key: 'q' }).end).toBe('quit');
    expect(dash.take({ type: 'key', key: 'ctrl-c' }).end).toBe('interrupt');
  });

  it('ends at Ctrl-C, also during a question', async () => {
    await arrange(1);
    for (const key of ['?', 'D', '/']) {
      dash.take({ type: 'key', key });
      expect(dash.take({ type: 'key', key: 'ctrl-c' }).end).toBe('interrupt');
      dash.take({ type: 'key', key: 'escape' });
    }
  });

  it('ignores a reply to another query', async () => {
    await arrange(3);
    const query = queryOf(dash.model);
    const reply = await dash.backend.read(query);
    await dash.press('escape');
    const before = dash.text;
    dash.take({ type: 'reply', query, reply });
    expect(dash.text).toBe(before);
  });

  it('keeps the last data while Redis is unavailable, and shows their age', async () => {
    await arrange(3);
    dash.clock.advance(12_000);
    dash.take({ type: 'failure', message: 'Redis is unavailable:\u001b[2J\ncome back later' });
    expect(dash.lines[0]).toMatch(/127\.0\.0\.1:6379 · as of 12s ago$/);
    expect(dash.lines.at(-3)).toBe('! Redis is unavailable:\\x1b[2J\\ncome back later');
    expect(ids()).toHaveLength(3);
    await dash.read();
    expect(dash.lines[0]).toMatch(/· now$/);
    expect(dash.text).not.toContain('unavailable');
  });

  it('clears the status line after a while', async () => {
    await arrange(1);
    await dash.press('C');
    expect(dash.status).toMatch(/^Only active tasks/);
    dash.clock.advance(9_000);
    dash.take({ type: 'tick' });
    expect(dash.status).toMatch(/^Only active tasks/);
    dash.clock.advance(1_000);
    dash.take({ type: 'tick' });
    expect(dash.status).toBe('');
  });
});
