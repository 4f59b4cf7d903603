import type { TaskWait, WaitedFor } from '../../inspector/waits.js';
import { formatMoment } from '../../words/when.js';

const nameOf = ({ prerequisite }: WaitedFor): string =>
  'id' in prerequisite
    ? `task ${prerequisite.id} in queue "${prerequisite.queue}"`
    : `${prerequisite.type} with key "${prerequisite.key}"`;

function lineOf(one: WaitedFor): string {
  if (one.state === 'failed') return `${nameOf(one)}, which has failed: ${one.reason ?? 'no reason'}`;
  return one.paused ? `${nameOf(one)}, which is paused` : nameOf(one);
}

/** What a task waits for, as fields: a line for each. Those that are done are only counted. */
export function waitFieldsOf(wait: TaskWait, now: number): [title: string, value: string][] {
  const open = wait.prerequisites.filter(({ state }) => state !== 'succeeded');
  const done = wait.prerequisites.length - open.length;
  return [
    ['Waits until', formatMoment(wait.until, now)],
    ['Cancelled', wait.cancelled ? 'yes, revived when what failed succeeds after all' : ''],
    ['Succeeded', `${done} of ${wait.prerequisites.length} prerequisites`],
    ...open.map((one): [string, string] => ['Waits for', lineOf(one)]),
  ];
}
