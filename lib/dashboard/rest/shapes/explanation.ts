import type {
  OpenPrerequisite,
  SuspendedStep,
  TaskExplanation,
  TaskReason,
} from '../../../inspector/explain/reasons.js';
import { reasonText } from '../../../inspector/explain/words.js';
import { FAIRNESS_HEADER } from '../../../wire/fairness.js';
import type { Dashboard } from '../../dashboard.js';
import type { Permissions } from '../../permissions.js';
import { listOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from './times.js';

export const explanationSchemas = {
  Explanation: shape({
    state: text(),
    summary: text('the text of the first reason'),
    reasons: listOf(ref('Reason')),
  }),
  Reason: shape({
    kind: text('as `TaskReason` names them'),
    text: text('one or two sentences; what is redacted is left out'),
    until: orNull(time('when it may change by itself; null when that is not known')),
    tasks: listOf(shape({ queue: text(), id: text() })),
    queues: listOf(text()),
  }),
};

/** What the sender may see of the data of reasons. */
interface View {
  readonly dashboard: Dashboard;
  readonly permissions: Permissions;
  readonly type: string;
  readonly queue: string;
  /** Whether the payload of the task is hidden: the keys of what it waits for may be parts of it. */
  readonly isHidden: boolean;
}

export function showExplanation({ state, reasons, timestamp }: TaskExplanation, view: View) {
  const shown = reasons.map((reason) => {
    const visible = visiblePart(reason, view);
    const words = reasonText(visible, timestamp.getTime());
    return { kind: reason.kind, text: words, until: timeOrNull(untilOf(reason)), ...linksOf(visible) };
  });
  return { state: state ?? '', summary: shown[0]!.text, reasons: shown };
}

/** The reason without what is hidden, and without queues that the sender may not see. */
function visiblePart(reason: TaskReason, { dashboard, permissions, type, queue, isHidden }: View): TaskReason {
  const maySee = (one: { queue: string }): boolean => one.queue === '' || permissions.roleIn(one.queue) !== undefined;
  switch (reason.kind) {
    case 'retry':
    case 'archived':
      return { ...reason, error: dashboard.presenter.presentError({ type, queue, error: reason.error }) };
    case 'waiting':
      return { ...reason, open: reason.open.map((one) => visiblePrerequisite(dashboard, one, isHidden)) };
    case 'keyLimit':
    case 'keyTurn':
      return dashboard.presenter.hidesHeader({ type, queue }, FAIRNESS_HEADER)
        ? { ...reason, key: '(hidden)' }
        : reason;
    case 'handlerLimit':
      return { ...reason, holders: reason.holders.filter(maySee) };
    case 'suspended':
      return { ...reason, steps: reason.steps.map((step) => visibleStep(step, maySee)) };
    case 'priority':
      return { ...reason, queues: reason.queues.filter(maySee) };
    default:
      return reason;
  }
}

const visibleStep = (step: SuspendedStep, maySee: (one: { queue: string }) => boolean): SuspendedStep =>
  step.child && !maySee(step.child) ? { ...step, child: undefined } : step;

function visiblePrerequisite({ presenter }: Dashboard, one: OpenPrerequisite, isHidden: boolean): OpenPrerequisite {
  const { prerequisite } = one;
  const key = isHidden && 'key' in prerequisite ? { ...prerequisite, key: '(hidden)' } : prerequisite;
  return {
    ...one,
    prerequisite: key,
    reason: one.reason === undefined ? undefined : presenter.presentReason(one.reason),
  };
}

function untilOf(reason: TaskReason): Date | undefined {
  switch (reason.kind) {
    case 'scheduled':
    case 'suspended':
    case 'retry':
      return reason.at;
    case 'waiting':
      return reason.until;
    case 'running':
      return reason.deadline;
    case 'leaseExpired':
      return reason.recoverableAt;
    case 'payloadTooNew':
      return reason.retryAt;
    case 'handlerLimit':
      return reason.opensAt ?? reason.retryAt;
    case 'queueLimit':
    case 'keyLimit':
      return reason.opensAt;
    default:
      return undefined;
  }
}

function linksOf(reason: TaskReason): { tasks: { queue: string; id: string }[]; queues: string[] } {
  switch (reason.kind) {
    case 'waiting':
      return {
        tasks: reason.open.flatMap(({ prerequisite }) => ('id' in prerequisite ? [prerequisite] : [])),
        queues: [],
      };
    case 'suspended':
      return { tasks: reason.steps.flatMap(({ child }) => child ?? []), queues: [] };
    case 'keyLimit':
      return { tasks: [...reason.holders], queues: [] };
    case 'handlerLimit':
      return { tasks: reason.holders.filter(({ queue }) => queue !== ''), queues: [] };
    case 'priority':
      return { tasks: [], queues: reason.queues.map(({ queue }) => queue) };
    default:
      return { tasks: [], queues: [] };
  }
}
