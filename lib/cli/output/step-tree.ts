import type { WorkflowStepInfo } from '../../inspector/workflows.js';
import { formatDuration } from '../../words/when.js';

/** Below this many levels, steps are not indented further: a chain of 100 steps stays readable. */
const MAX_INDENT = 12;

/** One line of the graph of a run. */
export interface StepLine {
  /** Its name, indented by how many steps are before it at most. */
  readonly name: string;
  readonly state: string;
  /** How long it was ready, until it ended. */
  readonly took: string;
  readonly task: string;
  /** What it waits for besides the step above it. */
  readonly after: string;
  readonly error: string;
}

/**
 * The graph as text: each step once, below the last of those it waits for, so that what follows a
 * step is indented under it.
 *
 * @param now milliseconds since the epoch
 */
export function toStepLines(graph: readonly WorkflowStepInfo[], now: number): StepLine[] {
  const depths = depthsOf(graph);
  const children = new Map<string | undefined, WorkflowStepInfo[]>();
  for (const step of graph) {
    const parent = parentOf(step, depths);
    const siblings = children.get(parent);
    if (siblings) siblings.push(step);
    else children.set(parent, [step]);
  }
  const lines: StepLine[] = [];
  const left = [...(children.get(undefined) ?? [])].reverse();
  for (let step = left.pop(); step; step = left.pop()) {
    lines.push(toLine(step, depths.get(step.name)!, parentOf(step, depths), now));
    left.push(...[...(children.get(step.name) ?? [])].reverse());
  }
  return lines;
}

/** How many steps are before each, on the longest way; where stored steps wait in a circle, it is cut somewhere. */
function depthsOf(graph: readonly WorkflowStepInfo[]): Map<string, number> {
  const depths = new Map<string, number>();
  const byName = new Map(graph.map((step) => [step.name, step]));
  const entered = new Set<string>();
  for (const step of graph) {
    const stack = entered.has(step.name) ? [] : [step];
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      entered.add(top.name);
      const open = top.after.filter((name) => byName.has(name) && !entered.has(name));
      if (open.length > 0) stack.push(...open.map((name) => byName.get(name)!));
      else {
        depths.set(
          top.name,
          top.after.reduce((deepest, name) => Math.max(deepest, (depths.get(name) ?? -1) + 1), 0),
        );
        stack.pop();
      }
    }
  }
  return depths;
}

/** The deepest of those above it that it waits for; the first of several. */
function parentOf({ name, after }: WorkflowStepInfo, depths: ReadonlyMap<string, number>): string | undefined {
  const depth = depths.get(name)!;
  let parent: string | undefined;
  for (const other of after) {
    const above = depths.get(other) ?? depth;
    if (above < depth && (parent === undefined || above > depths.get(parent)!)) parent = other;
  }
  return parent;
}

function toLine(step: WorkflowStepInfo, depth: number, parent: string | undefined, now: number): StepLine {
  const { name, state, readyAt, endedAt, error, optional, after, type, lateSince } = step;
  const notes = [optional ? 'optional' : '', lateSince ? 'late' : ''].filter(Boolean).join(', ');
  const end = endedAt?.getTime() ?? (state === 'ready' ? now : undefined);
  return {
    name: `${'  '.repeat(Math.min(depth, MAX_INDENT))}${name}`,
    state: notes === '' ? state : `${state} (${notes})`,
    took: readyAt && end !== undefined ? formatDuration(Math.max(0, end - readyAt.getTime())) : '',
    task: type,
    after: after.filter((other) => other !== parent).join(', '),
    error: error ?? '',
  };
}
