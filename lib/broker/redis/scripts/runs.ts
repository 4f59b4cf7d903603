import { ceilSeconds } from '../../../clock.js';
import { InvalidTaskError } from '../../../errors.js';
import type { NewRun, NewStep } from '../../workflows.js';
import { requireSeconds } from './arguments.js';
import { encodeLinkedMessage, linkedTask, watcherOfMark } from './linked-requests.js';
import {
  COUNTS_SIZE,
  FLAGS_AT,
  type Graph,
  LONGEST_NAMES,
  NO_NAME,
  OPEN_AT,
  OPTIONAL,
  PLAIN,
  POLICY_AT,
  READY_AT,
  RUN_ENDED_AT,
  RUN_STARTED_AT,
  RUN_TOTAL_AT,
  STEP_SIZE,
} from './run-layout.js';
import type { Argument } from './script-command.js';

/** How long a run may be until it asks for the tasks of its steps: see shared/runs.lua. */
const PROBE_SECONDS = 600;

/**
 * Redis keeps a hash of up to 512 short values in a list, and searches it from end to end. One value
 * that is too long for it turns the hash into a table.
 */
const FEW_STEPS = 12;
const TOO_LONG = 65;

/** How many steps begin by the call that starts a run; the others by the next calls: see shared/run-pages.lua. */
const BEGUN_AT_ONCE = 1000;

/**
 * A run as start-runs.lua reads it. @param now milliseconds since the epoch
 *
 * @throws InvalidTaskError
 */
export function encodeRun(place: string, run: NewRun, now: number): Argument[] {
  const following = stepsAfter(run);
  const total = run.steps.length;
  const readyCount = run.steps.filter(({ after }) => after.length === 0).length;
  const options = { name: run.name, retention: run.retention, deadline: run.deadline };
  const fields: Argument[] = [
    'c',
    encodeCounts(total, readyCount, now),
    'o',
    JSON.stringify(options).padEnd(total > FEW_STEPS ? TOO_LONG : 0),
  ];
  const ready: Argument[] = [];
  let later = '';
  run.steps.forEach((step, n) => {
    const { name } = step;
    const isReady = step.after.length === 0;
    const begins = isReady && ready.length < BEGUN_AT_ONCE;
    const graph = graphOf(place, step, n);
    const [after, before] = [namesText(following.get(name)!), beforeText(step)];
    fields.push(`s:${name}`, encodeStep(step, isPlain(graph), begins ? now : 0, after, before));
    fields.push(`d:${name}`, `${after}${before}${JSON.stringify(graph)}`);
    fields.push(`v:${name}`, encodeLinkedMessage(step.request.message));
    if (begins) ready.push(`${fields.length}${encodeReady(place, step, now)}`);
    else if (isReady) later += `${name}\0`;
  });
  const second = Math.floor(now / 1000);
  const due = total === 0 ? second + run.retention : Math.min(run.deadline ?? Infinity, second + PROBE_SECONDS);
  const what = `of run "${run.id}"`;
  return [
    run.id,
    String(now),
    requireSeconds(due, `the deadline or retention ${what}`),
    String(fields.length),
    ...fields,
    String(ready.length),
    ...ready,
    later,
  ];
}

/** Steps to add to a run, as grow-run.lua reads them. */
export const encodeAdded = (place: string, steps: readonly NewStep[]): Argument[] =>
  steps.flatMap((step) => {
    const graph = graphOf(place, step, 0);
    return [
      step.name,
      `${step.onFailure[0]}${step.optional ? '1' : '0'}${isPlain(graph) ? '1' : '0'}`,
      `${beforeText(step)}${JSON.stringify(graph)}`,
      encodeLinkedMessage(step.request.message),
      step.after.length === 0 ? '' : JSON.stringify(step.after),
    ];
  });

/** The names of the steps after each step. */
function stepsAfter(run: NewRun): Map<string, string[]> {
  const following = new Map<string, string[]>(run.steps.map(({ name }) => [name, []]));
  if (following.size < run.steps.length) throw refused(run.id, 'two steps have the same name');
  for (const { name, after } of run.steps) {
    for (const before of after) {
      const names = following.get(before);
      if (!names) throw refused(run.id, `"${name}" comes after "${before}", which is not there`);
      names.push(name);
    }
  }
  return following;
}

const refused = (run: string, why: string): InvalidTaskError =>
  new InvalidTaskError(`the workflow "${run}" cannot be started: ${why}; check the names of its steps`);

function graphOf(place: string, { request, delay, mark }: NewStep, n: number): Graph {
  const { message } = request;
  const { processAt, uniqueKey, uniqueTtl } = linkedTask(request, undefined);
  const graph: Graph = { n, t: message.type };
  if (message.queue !== place) graph.q = message.queue;
  if (delay > 0) graph.y = delay;
  if (processAt !== undefined) graph.a = processAt as number;
  if (uniqueTtl !== undefined) [graph.u, graph.l] = [uniqueKey as string, uniqueTtl as number];
  if (mark) graph.k = watcherOfMark(mark);
  return graph;
}

/** Its task is one of the run's queue, to begin at once, that only the run watches. */
const isPlain = ({ q, y, a, u, k }: Graph): boolean => (q ?? y ?? a ?? u ?? k) === undefined;

/** Names of steps as shared/runs.lua has them. */
const namesText = (names: readonly string[]): string => (names.length > 0 ? `${names.join('\0')}\0` : '');

/** The names of the steps before a step. */
const beforeText = ({ after }: NewStep): string => (after.length > 0 ? `\0${namesText(after)}` : '');

/** COUNTS of shared/runs.lua. */
function encodeCounts(total: number, ready: number, now: number): Buffer {
  const bytes = Buffer.alloc(COUNTS_SIZE);
  bytes.write(total === 0 ? 's' : 'r', 'latin1');
  bytes.writeUInt32LE(total, 1);
  bytes.writeUInt32LE(ready, 5);
  if (total === 0) bytes.writeDoubleLE(now, RUN_ENDED_AT);
  bytes.writeDoubleLE(now, RUN_STARTED_AT);
  bytes.writeUInt32LE(total, RUN_TOTAL_AT);
  return bytes;
}

/** STEP of shared/runs.lua; of a step that waits, with L.neighbours of run-successes.lua. */
function encodeStep(step: NewStep, plain: boolean, readyAt: number, following: string, before: string): Buffer {
  const { after, onFailure, optional } = step;
  const fits = (names: string): boolean => Buffer.byteLength(names) <= LONGEST_NAMES && !names.includes(NO_NAME);
  const names = [`${following}${before}`, following].find(fits);
  const rest = after.length > 0 && names !== undefined ? `\0${names}` : '';
  const bytes = Buffer.alloc(STEP_SIZE + Buffer.byteLength(rest));
  bytes.write(rest, STEP_SIZE);
  bytes.write(after.length === 0 ? 'r' : 'w', 'latin1');
  bytes.write(onFailure[0]!, POLICY_AT, 'latin1');
  bytes[FLAGS_AT] = (optional ? OPTIONAL : 0) + (plain ? PLAIN : 0);
  bytes.writeDoubleLE(readyAt, READY_AT);
  bytes.writeUInt32LE(after.length, OPEN_AT);
  return bytes;
}

/** What is special about a step that waits for none, as start-runs.lua reads it. */
function encodeReady(place: string, { request, delay, mark }: NewStep, now: number): string {
  const { processAt = 0, uniqueKey, uniqueTtl } = linkedTask(request, undefined);
  const { queue } = request.message;
  if (queue !== place) return ` ${JSON.stringify({ queue })}`;
  const at = Math.max(processAt as number, delay > 0 ? ceilSeconds(now + delay) : 0);
  const isLater = at * 1000 > now;
  if (!isLater && uniqueTtl === undefined && !mark) return '';
  const options = { processAt: isLater ? at : undefined, uniqueKey, uniqueTtl };
  return ` ${JSON.stringify({ ...options, mark: mark && watcherOfMark(mark) })}`;
}
