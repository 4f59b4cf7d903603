import { expect, it } from 'vitest';
import { taskIdOfStep } from '../../../lib/broker/workflows.js';
import { InvalidWorkflowError } from '../../../lib/errors.js';
import { requireRunId, runIdOf } from '../../../lib/workflows/names.js';

it('tasks of steps have ids that asynqmon can act on, and no two have the same', () => {
  expect(taskIdOfStep(runIdOf('order:fulfil', '17'), 'papers/receipt')).toBe('order:fulfil~17~papers~receipt');
  const steps = ['s', 'b/s', 'a/b/s'].flatMap((step) => ['a', 'a/b', 'b', 'a/b/s'].map((id) => [id, step] as const));
  expect(new Set(steps.map(([id, step]) => taskIdOfStep(runIdOf('w', requireRunId(id)), step))).size).toBe(
    steps.length,
  );
  expect(() => requireRunId('a~b')).toThrow(InvalidWorkflowError);
});
