import type { Place } from '../../broker/inspection.js';
import { isAllowed, type TaskAction } from '../../task/actions.js';
import type { TaskState } from '../../wire/states.js';
import { countTasks } from '../words.js';

export type TaskVerb = Extract<TaskAction, 'run' | 'archive' | 'delete' | 'cancel'>;

/** Something to be done to tasks as long as they are where they were seen. */
export interface TaskDeed {
  readonly verb: TaskVerb;
  readonly queue: string;
  readonly place: Place;
  readonly ids: readonly string[];
}

export interface QueueDeed {
  readonly verb: 'pause' | 'resume';
  readonly queue: string;
}

export type Deed = TaskDeed | QueueDeed;

/** What has come of it. */
export interface Outcome {
  readonly text: string;
  readonly good: boolean;
  /** Ids of the tasks it was done to. */
  readonly settled: readonly string[];
}

/** Why it cannot be done to tasks in a state, as far as that is known beforehand. */
export function impossibility(verb: TaskVerb, state: TaskState): string | undefined {
  if (isAllowed(verb, state)) return undefined;
  if (verb === 'cancel') return `Only active tasks can be cancelled, and this is ${state}: A or D, perhaps?`;
  if (state === 'active') return `What is active cannot be ${PARTICIPLES[verb]}; C cancels it.`;
  if (verb === 'run') return 'What is pending runs as soon as a server has room for it.';
  return 'What is archived cannot be archived again.';
}

const PARTICIPLES: Readonly<Record<TaskVerb, string>> = {
  run: 'run',
  archive: 'archived',
  delete: 'deleted',
  cancel: 'cancelled',
};

/** Whether it has to be asked for twice: what cannot be undone, and what concerns many. */
export const isGrave = ({ verb, ids }: TaskDeed): boolean => verb === 'delete' || (verb !== 'run' && ids.length > 1);

export function questionOf({ verb, ids, place }: TaskDeed): string {
  const what = ids.length === 1 ? `this ${place.state} task` : `${ids.length} ${place.state} tasks`;
  return `${verb[0]!.toUpperCase()}${verb.slice(1)} ${what}?${ids.length === 1 ? ` ${ids[0]}` : ''}`;
}

/** @param reason why the first of the others was left alone */
export function outcomeOf({ verb, ids }: TaskDeed, settled: readonly string[], reason?: string): Outcome {
  const left = ids.length - settled.length;
  const done = settled.length > 0 ? describeDone(verb, settled) : undefined;
  if (left === 0) return { text: `${done}.`, good: true, settled };
  const refused = ids.length === 1 ? reason! : `${countTasks(left)} not: ${reason}`;
  return { text: done ? `${done}; ${refused}` : refused, good: false, settled };
}

function describeDone(verb: TaskVerb, ids: readonly string[]): string {
  const what = ids.length === 1 ? `Task "${ids[0]}"` : countTasks(ids.length);
  if (verb === 'cancel') return `Asked to cancel ${ids.length === 1 ? `task "${ids[0]}"` : what}`;
  return `${what} ${ids.length === 1 ? 'is' : 'are'} ${verb === 'run' ? 'pending now' : PARTICIPLES[verb]}`;
}
