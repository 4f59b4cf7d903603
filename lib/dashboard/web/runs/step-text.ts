import type { WorkflowStep } from '../api/link-types.js';
import { clockDuration, instant } from '../text/format.js';

/** How long a step took, or takes so far; empty before it is ready. */
export function durationOf({ ready_at: readyAt, ended_at: endedAt, state }: WorkflowStep, now: number): string {
  const begin = instant(readyAt);
  const end = state === 'ready' ? now : instant(endedAt);
  return begin === undefined || end === undefined ? '' : clockDuration(Math.max(0, end - begin) / 1000);
}

/** How long no server has taken its task; empty unless it is late. */
export function lateText({ late_since: lateSince }: WorkflowStep, now: number): string {
  const since = instant(lateSince);
  return since === undefined
    ? ''
    : `no server has taken its task for ${clockDuration(Math.max(0, now - since) / 1000)}`;
}

/** What it waits for, and what it does when that fails. */
export function waitText({ after, on_failure: onFailure }: WorkflowStep): string {
  if (after.length === 0) return '';
  const policy = { cancel: '', run: ', failed or not', wait: ', waits for reruns' }[onFailure];
  return `${after.join(', ')}${policy}`;
}
