import { expect, it } from 'vitest';
import { toStepLines } from '../../../lib/cli/output/step-tree.js';
import type { WorkflowStepInfo } from '../../../lib/inspector/workflows.js';

const NOW = 1_900_000_000_000;

const stepInfo = (name: string, after: string[] = [], more: Partial<WorkflowStepInfo> = {}): WorkflowStepInfo => ({
  name,
  type: `type:${name}`,
  queue: 'default',
  taskId: `w/1~${name}`,
  after,
  onFailure: 'cancel',
  optional: false,
  state: 'waiting',
  error: undefined,
  readyAt: undefined,
  endedAt: undefined,
  lateSince: undefined,
  ...more,
});

it('shows each step once, below the last of those it waits for', () => {
  const graph = [
    stepInfo('pay', [], { state: 'succeeded', readyAt: new Date(NOW - 5000), endedAt: new Date(NOW - 3500) }),
    stepInfo('receipt', ['pay'], { state: 'ready', readyAt: new Date(NOW - 3500) }),
    stepInfo('invoice', ['pay'], { state: 'failed', error: 'no paper', optional: true }),
    stepInfo('parcel', ['invoice'], { lateSince: new Date(NOW) }),
    stepInfo('close', ['receipt', 'parcel', 'pay']),
    stepInfo('alone'),
  ];
  expect(
    toStepLines(graph, NOW).map(({ name, state, took, after, error }) => [name, state, took, after, error]),
  ).toEqual([
    ['pay', 'succeeded', '1.5s', '', ''],
    ['  receipt', 'ready', '3.5s', '', ''],
    ['  invoice', 'failed (optional)', '', '', 'no paper'],
    ['    parcel', 'waiting (late)', '', '', ''],
    ['      close', 'waiting', '', 'receipt, pay', ''],
    ['alone', 'waiting', '', '', ''],
  ]);
});

it('shows each step once though some wait in a circle, whatever is stored', () => {
  const graph = [
    stepInfo('a', [], { state: 'succeeded' }),
    stepInfo('self', ['self']),
    stepInfo('x', ['a', 'z']),
    stepInfo('y', ['x']),
    stepInfo('z', ['y', 'lost']),
    stepInfo('end', ['z', 'self']),
  ];
  const lines = toStepLines(graph, NOW);
  expect(lines.map(({ name, after }) => [name, after])).toEqual([
    ['a', ''],
    ['self', 'self'],
    ['y', 'x'],
    ['  z', 'lost'],
    ['    x', 'a'],
    ['    end', 'self'],
  ]);
});

it('shows 10,000 steps in a row, in whatever order they were added', () => {
  const chain = Array.from({ length: 10_000 }, (_, n) => stepInfo(`s${n}`, n === 0 ? [] : [`s${n - 1}`]));
  const lines = toStepLines([...chain].reverse(), NOW);
  expect(lines).toHaveLength(10_000);
  expect(lines[0]!.name).toBe('s0');
  expect(lines.at(-1)!.name.trim()).toBe('s9999');
  expect(Math.max(...lines.map(({ name }) => name.length))).toBeLessThan(40);
});
