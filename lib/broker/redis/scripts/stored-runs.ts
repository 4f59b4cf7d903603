import type { FailurePolicy } from '../../links.js';
import {
  type RunState,
  type RunSummary,
  type StepState,
  type StoredRun,
  type StoredStep,
  reasonOfCancelled,
} from '../../workflows.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';
import {
  COUNTS_SIZE,
  ENDED_AT,
  FLAGS_AT,
  type Graph,
  namesBefore,
  OPTIONAL,
  POLICY_AT,
  READY_AT,
  RUN_ENDED_AT,
  RUN_FAILED_AT,
  RUN_OPEN_AT,
  RUN_STARTED_AT,
  RUN_TOTAL_AT,
  STEP_SIZE,
} from './run-layout.js';

/** The state of a step that has left a result. */
const WITH_RESULT = 'S'.charCodeAt(0);

const POLICIES: Readonly<Record<string, FailurePolicy>> = { c: 'cancel', r: 'run', w: 'wait' };
const STEP_STATES: Readonly<Record<string, StepState>> = {
  w: 'waiting',
  r: 'ready',
  a: 'ready',
  s: 'succeeded',
  S: 'succeeded',
  f: 'failed',
  x: 'cancelled',
};
const RUN_STATES: Readonly<Record<string, RunState>> = { r: 'running', s: 'succeeded', f: 'failed', c: 'cancelled' };

interface Options {
  readonly name?: string;
  readonly reason?: string;
}

/** What describe-run.lua returns. */
export function readRun(queue: string, id: string, packed: Buffer): StoredRun | undefined {
  if (packed.length === 0) return undefined;
  const reader = new PackedReader(packed);
  const summary = readSummary(queue, id, reader.view(), reader.text());
  const found: { n: number; step: StoredStep }[] = [];
  while (reader.more()) found.push(readStep(queue, reader));
  const steps = found.sort((one, other) => one.n - other.n).map(({ step }) => step);
  const byName = new Map(steps.map((step) => [step.name, step]));
  const graph = steps.map((step) => ({
    ...step,
    error: step.error ?? reasonOfCancelled(step, byName, summary.reason),
  }));
  return { ...summary, graph };
}

/** @param counts and @param options as shared/runs.lua writes them */
export function readSummary(queue: string, id: string, counts: Buffer, options: string): RunSummary {
  const { name = '', reason } = readJson<Options>(options, {});
  const number = (at: number): number => (counts.length === COUNTS_SIZE ? counts.readUInt32LE(at) : 0);
  const time = (at: number): number => (counts.length === COUNTS_SIZE ? counts.readDoubleLE(at) : 0);
  return {
    queue,
    id,
    name,
    state: RUN_STATES[counts.toString('latin1', 0, 1)] ?? 'failed',
    startedAt: time(RUN_STARTED_AT),
    endedAt: time(RUN_ENDED_AT) || undefined,
    steps: number(RUN_TOTAL_AT),
    open: number(RUN_OPEN_AT),
    failed: number(RUN_FAILED_AT),
    reason,
  };
}

function readStep(queue: string, reader: PackedReader): { n: number; step: StoredStep } {
  const name = reader.text();
  const packed = reader.view();
  const graph = readGraph(reader.view());
  const error = reader.text();
  const isWhole = packed.length >= STEP_SIZE;
  const state = STEP_STATES[packed.toString('latin1', 0, 1)] ?? 'failed';
  const flags = isWhole ? packed[FLAGS_AT]! : 0;
  const step: StoredStep = {
    name,
    type: graph.t,
    queue: graph.q ?? queue,
    after: graph.before,
    onFailure: POLICIES[packed.toString('latin1', POLICY_AT, FLAGS_AT)] ?? 'cancel',
    optional: (flags & OPTIONAL) > 0,
    state,
    error: error === '' || state === 'succeeded' ? undefined : error,
    readyAt: (isWhole && packed.readDoubleLE(READY_AT)) || undefined,
    endedAt: (isWhole && packed.readDoubleLE(ENDED_AT)) || undefined,
    hasResult: hasResult(packed),
  };
  return { n: graph.n, step };
}

/** The names of the steps after it come first, and those before it: the scripts go on with them. */
function readGraph(place: Buffer): Graph & { readonly before: readonly string[] } {
  const start = place.lastIndexOf(0) + 1;
  const graph = readJson<Graph>(place.toString('utf8', start), { n: 0, t: '' });
  return { ...graph, before: namesBefore(`\0${place.toString('utf8', 0, start)}`) ?? [] };
}

/** @param step as shared/runs.lua packs it */
export const hasResult = (step: Buffer): boolean => step.length === STEP_SIZE && step[0] === WITH_RESULT;

/** @param place of a step in the graph; @returns the names of the steps before it */
export const readBefore = (place: Buffer): readonly string[] => readGraph(place).before;
