import { mapConcurrent } from '../async.js';
import type { Broker } from '../broker/broker.js';
import type { StoredTask } from '../broker/inspection.js';
import { type StoredRun, type StoredStep, taskIdOfStep } from '../broker/workflows.js';

/** A task that could have started so long ago is late: an idle server takes one within milliseconds. */
export const LATE_AFTER_MS = 60_000;
/** The most tasks that are read for one run. */
const MAX_READ = 100;
const MAX_CALLS_AT_ONCE = 8;

/**
 * The steps that are late, and since when each could have started: ready, and no server has taken the
 * task. It reads the tasks of steps that have been ready for that long, at most 100.
 */
export async function lateSteps(
  { inspection, clock }: Pick<Broker, 'inspection' | 'clock'>,
  run: StoredRun,
): Promise<Map<string, Date>> {
  const late = new Map<string, Date>();
  const latest = clock.now() - LATE_AFTER_MS;
  const candidates = run.graph.filter(({ state, readyAt }) => state === 'ready' && readyAt! <= latest);
  await mapConcurrent(candidates.slice(0, MAX_READ), MAX_CALLS_AT_ONCE, async ({ name, queue }: StoredStep) => {
    const since = startableSince(await inspection.getTask(queue, taskIdOfStep(run.id, name)));
    if (since !== undefined && since <= latest) late.set(name, new Date(since));
  });
  return late;
}

/** Since when a server could have taken the task, in milliseconds since the epoch; `undefined` if one has it. */
function startableSince(task: StoredTask | undefined): number | undefined {
  if (task?.state === 'pending') return task.pendingSince;
  const isDelayed = task?.state === 'scheduled' || task?.state === 'retry';
  return isDelayed && task.nextProcessAt !== undefined ? task.nextProcessAt * 1000 : undefined;
}
