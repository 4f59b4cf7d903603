import { expect, it } from 'vitest';
import { taskIdOfStep } from '../../../lib/broker/workflows.js';
import { InvalidWorkflowError } from '../../../lib/errors.js';
import { requireRunId, runIdOf } from '../../../lib/workflows/names.js';

it('tasks of steps have ids that asynqmon can act on, and no two have the same', () => {
  expect(taskIdOfStep(runIdOf('order:fulfil', '17'), 'papers/receipt')).toBe('order:fulfil~17~papers~receipt');
  expect(taskIdOfStep(runIdOf('w', '2026/11/23'), 's')).toBe('w~2026~~11~~23~s');
  const given = ['a', 'a/b', 'b', 'a/b/s', '/', '//', '/a', 'a/', 'a//b', 'a/b/'];
  const steps = ['s', 'b/s', 'a/b/s'].flatMap((step) => given.map((id) => [id, step] as const));
  const ids = steps.map(([id, step]) => taskIdOfStep(runIdOf('w', requireRunId(id)), step));
  expect(new Set(ids).size).toBe(steps.length);
  expect(ids.filter((id) => id.includes('/'))).toEqual([]);
  expect(() => requireRunId('a~b')).toThrow(InvalidWorkflowError);
});
