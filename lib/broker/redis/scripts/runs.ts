import { ceilSeconds } from '../../../clock.js';
import { InvalidTaskError } from '../../../errors.js';
import type { FailurePolicy } from '../../links.js';
import {
  type NewRun,
  type NewStep,
  type RunState,
  type RunSummary,
  type StepState,
  type StoredRun,
  type StoredStep,
  reasonOfCancelled,
} from '../../workflows.js';
import { requireSeconds } from './arguments.js';
import { encodeLinkedMessage, linkedTask, type MarkWatcher, watcherOfMark } from './linked-requests.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';
import type { Argument } from './script-command.js';

/** How long a run may be until it asks for the tasks of its steps: see shared/runs.lua. */
const PROBE_SECONDS = 600;

/**
 * Redis keeps a hash of up to 512 short values in a list, and searches it from end to end. One value
 * that is too long for it turns the hash into a table.
 */
const FEW_STEPS = 12;
const TOO_LONG = 65;

const POLICIES: Readonly<Record<string, FailurePolicy>> = { c: 'cancel', r: 'run', w: 'wait' };
const STEP_STATES: Readonly<Record<string, StepState>> = {
  w: 'waiting',
  r: 'ready',
  a: 'ready',
  s: 'succeeded',
  f: 'failed',
  x: 'cancelled',
};
const RUN_STATES: Readonly<Record<string, RunState>> = { r: 'running', s: 'succeeded', f: 'failed', c: 'cancelled' };

/** The place of a step in the graph, as shared/runs.lua reads it. */
interface Graph {
  n: number;
  t: string;
  q?: string;
  o?: string[];
  y?: number;
  a?: number;
  u?: string;
  l?: number;
  k?: MarkWatcher;
}

interface Options {
  readonly name?: string;
  readonly reason?: string;
}

/**
 * A run as start-runs.lua reads it. @param now milliseconds since the epoch
 *
 * @throws InvalidTaskError
 */
export function encodeRun(place: string, run: NewRun, now: number): Argument[] {
  const graphs = encodeGraphs(place, run);
  const ready = run.steps.filter(({ after }) => after.length === 0);
  const total = run.steps.length;
  const state = total === 0 ? 's' : 'r';
  const options = { name: run.name, retention: run.retention, deadline: run.deadline };
  const fields: Argument[] = [
    'c',
    `${state} ${total} ${total} ${ready.length} 0 0 ${now} ${total === 0 ? now : '-'}`,
    'o',
    JSON.stringify(options).padEnd(total > FEW_STEPS ? TOO_LONG : 0),
  ];
  for (const step of run.steps) {
    const { name, after } = step;
    const isReady = after.length === 0;
    fields.push(`s:${name}`, `${isReady ? 'r' : 'w'}${flagsOf(step)} ${after.length} 0 ${isReady ? now : '-'} -`);
    fields.push(`d:${name}`, JSON.stringify(graphs.get(name)));
    if (!isReady) fields.push(`m:${name}`, encodeLinkedMessage(step.request.message));
  }
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
    ...ready.flatMap((step) => encodeReady(place, step, now)),
  ];
}

/** Steps to add to a run, as grow-run.lua reads them. */
export const encodeAdded = (place: string, steps: readonly NewStep[]): Argument[] =>
  steps.flatMap((step) => [
    step.name,
    flagsOf(step),
    JSON.stringify(graphOf(place, step, 0)),
    encodeLinkedMessage(step.request.message),
    step.after.length === 0 ? '' : JSON.stringify(step.after),
  ]);

function encodeGraphs(place: string, run: NewRun): Map<string, Graph> {
  const graphs = new Map(run.steps.map((step, n) => [step.name, graphOf(place, step, n)]));
  if (graphs.size < run.steps.length) throw refused(run.id, 'two steps have the same name');
  for (const { name, after } of run.steps) {
    for (const before of after) {
      const graph = graphs.get(before);
      if (!graph) throw refused(run.id, `"${name}" comes after "${before}", which is not there`);
      (graph.o ??= []).push(name);
    }
  }
  return graphs;
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

const flagsOf = ({ onFailure, optional }: NewStep): string => `${onFailure[0]}${optional ? '1' : '0'}`;

/** A step that waits for none: its name, its queue, what is special about its task, and its message. */
function encodeReady(place: string, { name, request, delay, mark }: NewStep, now: number): Argument[] {
  const { message } = request;
  const { processAt = 0, uniqueKey, uniqueTtl } = linkedTask(request, undefined);
  const at = Math.max(processAt as number, delay > 0 ? ceilSeconds(now + delay) : 0);
  const isLater = at * 1000 > now;
  const options =
    isLater || uniqueTtl !== undefined || mark
      ? JSON.stringify({ processAt: isLater ? at : undefined, uniqueKey, uniqueTtl, mark: mark && watcherOfMark(mark) })
      : '';
  return [name, message.queue === place ? '' : message.queue, options, encodeLinkedMessage(message)];
}

/** What describe-run.lua returns. */
export function readRun(queue: string, id: string, packed: Buffer): StoredRun | undefined {
  if (packed.length === 0) return undefined;
  const reader = new PackedReader(packed);
  const summary = readSummary(queue, id, reader.text(), reader.text());
  const found: { graph: Graph; step: StoredStep }[] = [];
  while (reader.more()) found.push(readStep(queue, reader));
  found.sort((one, other) => one.graph.n - other.graph.n);
  const before = new Map<string, string[]>(found.map(({ step }) => [step.name, []]));
  for (const { step, graph } of found) for (const name of graph.o ?? []) before.get(name)?.push(step.name);
  const steps = found.map(({ step }) => ({ ...step, after: before.get(step.name)! }));
  const byName = new Map(steps.map((step) => [step.name, step]));
  const graph = steps.map((step) => ({
    ...step,
    error: step.error ?? reasonOfCancelled(step, byName, summary.reason),
  }));
  return { ...summary, graph };
}

/** @param counts and @param options as shared/runs.lua writes them */
export function readSummary(queue: string, id: string, counts: string, options: string): RunSummary {
  const [state = '', steps, open, , failed, , startedAt, endedAt] = counts.split(' ');
  const { name = '', reason } = readJson<Options>(options, {});
  return {
    queue,
    id,
    name,
    state: RUN_STATES[state] ?? 'failed',
    startedAt: numberOf(startedAt),
    endedAt: timeOf(endedAt),
    steps: numberOf(steps),
    open: numberOf(open),
    failed: numberOf(failed),
    reason,
  };
}

function readStep(queue: string, reader: PackedReader): { graph: Graph; step: StoredStep } {
  const name = reader.text();
  const [flags = '', , , readyAt, endedAt] = reader.text().split(' ');
  const graph = readJson<Graph>(reader.text(), { n: 0, t: '' });
  const error = reader.text();
  const state = STEP_STATES[flags[0]!] ?? 'failed';
  const step: StoredStep = {
    name,
    type: graph.t,
    queue: graph.q ?? queue,
    after: [],
    onFailure: POLICIES[flags[1]!] ?? 'cancel',
    optional: flags[2] === '1',
    state,
    error: error === '' || state === 'succeeded' ? undefined : error,
    readyAt: timeOf(readyAt),
    endedAt: timeOf(endedAt),
    hasResult: reader.text() === '1',
  };
  return { graph, step };
}

const numberOf = (text: string | undefined): number => Number(text) || 0;

const timeOf = (text: string | undefined): number | undefined =>
  text === undefined || text === '-' ? undefined : Number(text);
