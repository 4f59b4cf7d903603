import type { HandlerStepInfo, HandlerStepList } from '../../../inspector/handler-step.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import type { Permissions } from '../../permissions.js';
import { anything, count, flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from './times.js';

const STATES = ['done', 'failed', 'running', 'retrying', 'asleep', 'waiting', 'undone'] as const;

export const stepSchemas = {
  HandlerSteps: shape({
    steps: listOf(ref('HandlerStep')),
    total: count('of all pages'),
    signals: listOf(shape({ name: text(), count: count('that have come'), taken: count('by waits') })),
    undoing: orNull({
      anyOf: [
        shape({ error: text('why its steps are undone; empty when that is not known'), over: flag('all are undone') }),
      ],
    }),
  }),
  HandlerStep: shape({
    name: text(),
    kind: text('run, sleep, wait, call, each or undo'),
    state: oneOf(STATES),
    started_at: time(),
    ended_at: orNull(time('null also for a wait whose signal has come: nobody stores when')),
    wake_at: orNull(time('when a sleep, a wait or the pause before the next try ends')),
    signal: orNull(text('which a wait is for')),
    child: orNull({ anyOf: [shape({ queue: text(), id: text() })] }),
    tries: count('that have failed so far'),
    done: orNull(count('how much of its list is done')),
    error: text('of the last try, or why it failed; empty if there is none'),
    result: anything(
      'what it has brought, without what is redacted; null when that is nothing, or more than 16,384 bytes',
    ),
    result_size: count('bytes of it as JSON'),
    result_redacted: flag('a part of it is hidden, or may be'),
  }),
};

export function showSteps(dashboard: Dashboard, task: TaskInfo, found: HandlerStepList | undefined, to: Permissions) {
  const { steps = [], total = 0, signals = [], undoing } = found ?? {};
  return {
    steps: steps.map((step) => showStep(dashboard, task, step, to)),
    total,
    signals,
    undoing: undoing ? { error: errorOf(dashboard, task, undoing.error), over: undoing.over } : null,
  };
}

const errorOf = ({ presenter }: Dashboard, { type, queue }: TaskInfo, error = ''): string =>
  presenter.presentError({ type, queue, error });

function showStep(dashboard: Dashboard, task: TaskInfo, step: HandlerStepInfo, to: Permissions) {
  const { name, kind, state, startedAt, endedAt, wakeAt, signal, child, tries, done, error, resultSize } = step;
  return {
    name,
    kind,
    state,
    started_at: timeOrNull(startedAt),
    ended_at: timeOrNull(endedAt),
    wake_at: timeOrNull(wakeAt),
    signal: signal ?? null,
    child: child && to.maySee(child.queue) ? child : null,
    tries: tries ?? 0,
    done: done ?? null,
    error: errorOf(dashboard, task, error),
    ...showResult(dashboard, task, step),
    result_size: resultSize,
  };
}

/** By the rules for the result of its task. */
function showResult({ presenter }: Dashboard, { type, queue, headers }: TaskInfo, { result }: HandlerStepInfo) {
  const bytes = result === undefined ? undefined : Buffer.from(JSON.stringify(result));
  const {
    text: shown,
    decoded,
    isHidden,
  } = presenter.present({ type, queue, headers, payload: NONE, result: bytes }).result;
  return {
    result: decoded ? decoded.value : shown === '' ? null : shown,
    result_redacted: bytes !== undefined && isHidden,
  };
}

const NONE = Buffer.alloc(0);
