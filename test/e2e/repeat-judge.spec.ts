import { describe, expect, it } from 'vitest';
import { RepeatJudge } from './repeat-judge.js';

/** Lets the judge of repeat-chaos.spec.ts hear a story, a line per millisecond times ten. */
class Told extends RepeatJudge {
  constructor(...lines: readonly string[]) {
    super({ connection: { host: 'nowhere' } });
    lines.forEach((line, at) => this.hear(`${(at + 1) * 10} ${line}`));
  }
}

const task = (mode: string, id: string, number = 0): [string, string, string, string] => [
  `calls ${mode} k call-${id}`,
  `got ${mode} k call-${id} ${id} true`,
  `began ${mode} k ${id} call-${id} ${number}`,
  `ran ${mode} k ${id} call-${id} ${number}`,
];

describe('the judge of repeats', () => {
  it.each(['unique', 'existing', 'replace', 'once', 'debounce', 'latest', 'supersede'])(
    'has no objection to one task: %s',
    (mode) => {
      expect(new Told(...task(mode, 'a')).faults()).toEqual([]);
    },
  );

  it('finds a task that was accepted and never ran', () => {
    for (const mode of ['once', 'throttle', 'started']) {
      expect(new Told(...task(mode, 'a').slice(0, 3)).faults()).toEqual([`${mode} k: a never ran`]);
    }
  });

  it('finds a task that ran twice, and none where an attempt was lost', () => {
    const again = task('once', 'a').slice(2);
    expect(new Told(...task('once', 'a'), ...again).faults()).toEqual(['once k: a ran twice']);
    expect(new Told(...task('once', 'a'), ...task('once', 'a', 1).slice(2)).faults()).toEqual([]);
    const other = again.map((line) => line.replace('call-a', 'call-b').replace(/0$/, '1'));
    expect(new Told(...task('once', 'a'), 'calls once k call-b', ...other).faults()).toEqual([
      'once k: two calls had a task that ran',
    ]);
  });

  it('finds two at once, and none when one follows the other', () => {
    const [a, b] = [task('unique', 'a'), task('unique', 'b')];
    expect(new Told(...a, ...b).faults()).toEqual([]);
    expect(new Told(...a.slice(0, 3), ...b, a[3]).faults()).toEqual(['unique k: two were there at once']);
  });

  it('finds a third that waits, and two that run', () => {
    const [a, b, c] = [task('latest', 'a'), task('latest', 'b'), task('latest', 'c')];
    const made = [...b.slice(0, 2), ...c.slice(0, 2)];
    expect(new Told(...a.slice(0, 3), ...made, a[3], ...b.slice(2), ...c.slice(2)).faults()).toEqual([
      'latest k: a third one waited',
    ]);
    expect(new Told(...a.slice(0, 3), ...b, a[3]).faults()).toEqual(['latest k: two ran at once']);
  });

  it('finds a throttled one that came too soon', () => {
    expect(new Told(...task('throttle', 'a'), ...task('throttle', 'b')).faults()).toEqual([
      'throttle k: b was made too soon after a',
    ]);
  });

  it('finds that the last payload did not run', () => {
    for (const mode of ['debounce', 'latest', 'replace']) {
      const late = [`calls ${mode} k late`, `got ${mode} k late a false`];
      expect(new Told(...task(mode, 'a'), ...late).faults()).toEqual([`${mode} k: the last payload did not run`]);
    }
  });

  it('finds one that comes again though it was superseded', () => {
    const [a, b] = [task('supersede', 'a'), task('supersede', 'b')];
    const again = ['began supersede k a call-a 1', 'began supersede k a call-a 2'];
    expect(new Told(...a.slice(0, 3), ...b, again[0]!).faults()).toEqual([]);
    expect(new Told(...a.slice(0, 3), ...b, ...again).faults()).toEqual([
      'supersede k: a began 2 times after it was superseded',
    ]);
  });

  it('finds what a client was refused', () => {
    const told = new Told('calls once k c', 'failed once k c ASYNQ_TASK_ID_CONFLICT');
    expect(told.faults()).toEqual(['ASYNQ_TASK_ID_CONFLICT']);
  });
});
