import type { PeriodicRef } from '../events/events.js';
import { at, count, errorText, stackOf, type Wording } from './wording.js';

export const GROUPS: Wording = {
  aggregationFailed: ({ queue, group, size, error, retryAt }, logger) =>
    logger.error(
      `Aggregating ${count(size, 'task')} of group "${group}" in queue "${queue}" failed, ` +
        `they go back to the group ${at(retryAt)}: ${errorText(error)}`,
      stackOf(error),
    ),
  groupsReclaimed: ({ queue, tasks }, logger) =>
    logger.warn(
      `${count(tasks, 'task')} of queue "${queue}" went back to their groups: aggregating them did not end in time`,
    ),
  groupsRepaired: ({ queue, listed, removed }, logger) =>
    logger.warn(`Repaired the list of groups of queue "${queue}": ${listed} added, ${removed} empty ones removed`),
  groupNotAggregated: ({ queue, group }, logger) =>
    logger.warn(
      `Tasks wait in group "${group}" of queue "${queue}", and no server aggregates them: ` +
        'add a method with @TaskAggregator() for it, or start the server that has one',
    ),
};

const WHY_SKIPPED = { unfinished: 'its last task is unfinished', paused: 'it is paused' };

export const PERIODIC: Wording = {
  periodicTaskSkipped: ({ entry, reason }, logger) =>
    reason === 'missed'
      ? logger.warn(`${periodic(entry)} was missed from ${entry.planned.toISOString()} on, and is skipped`)
      : logger.log(`${periodic(entry)} was skipped at ${entry.planned.toISOString()}: ${WHY_SKIPPED[reason]}`),
  periodicTaskFailed: ({ entry, error }, logger) =>
    logger.warn(`${periodic(entry)} enqueued nothing at ${entry.planned.toISOString()}: ${errorText(error)}`),
  periodicTaskAhead: ({ entry, ahead, key }, logger) =>
    logger.warn(
      `${periodic(entry)} counts as enqueued until ${entry.planned.toISOString()}, ${Math.round(ahead / 60_000)} min from now, and no ` +
        'process enqueues it before: the clock of a machine was ahead, or the clock of this one is behind. ' +
        `Set the clocks right; then delete the key ${key} to have it enqueued from then on`,
    ),
  periodicSourceFailed: ({ source, error }, logger) =>
    logger.error(`${source} returned no valid periodic tasks, the old ones stay: ${errorText(error)}`, stackOf(error)),
};

const periodic = ({ type, spec }: PeriodicRef): string => `Periodic task ${type} (${spec})`;
