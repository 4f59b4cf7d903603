import type { AttemptInfo, AttemptList } from '../../../task/attempts.js';
import type { TaskInfo } from '../../../task/info.js';
import { REDACTED } from '../../../redaction/rules.js';
import type { Dashboard } from '../../dashboard.js';
import { amount, count, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { goTime, timeOrNull } from './times.js';

export const attemptSchemas = {
  TaskAttempts: shape({
    attempts: listOf(ref('TaskAttempt')),
    total: count('attempts, with those of which nothing is known any more'),
  }),
  TaskAttempt: shape({
    number: count('from 1 on; one that is left out is of an attempt of which nothing is known'),
    outcome: oneOf(['failed', 'crashed', 'completed'] as const, 'crashed: its server has died'),
    started_at: orNull(time('null after a crash')),
    ended_at: time('after a crash the last sign of life of the server'),
    duration_seconds: orNull(amount('null after a crash')),
    server: orNull(text('host:pid:id of the server, after a crash host:pid; null if it is not known')),
    error: text('cut; empty for a success'),
    stack: orNull(text('cut; null when there is none, and when errors are hidden')),
  }),
};

/** Oldest first. */
export const showAttempts = (dashboard: Dashboard, task: TaskInfo, { attempts, total }: AttemptList) => ({
  attempts: attempts.map((attempt) => showAttempt(dashboard, task, attempt)),
  total,
});

function showAttempt({ presenter }: Dashboard, { type, queue }: TaskInfo, attempt: AttemptInfo) {
  const { number, outcome, startedAt, endedAt, duration, server, error, stack = '' } = attempt;
  const seenStack = presenter.presentError({ type, queue, error: stack });
  return {
    number,
    outcome,
    started_at: timeOrNull(startedAt),
    ended_at: goTime(endedAt),
    duration_seconds: duration === undefined ? null : duration / 1000,
    server: server ?? null,
    error: presenter.presentError({ type, queue, error }),
    stack: seenStack === '' || seenStack === REDACTED ? null : seenStack,
  };
}
