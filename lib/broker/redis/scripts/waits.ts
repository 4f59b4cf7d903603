import type { EdgeState, FailurePolicy, Prerequisite, StoredWait, TimeoutPolicy } from '../../links.js';
import { readJson } from './json.js';

/** The field `after` of a waiting task, see lua/shared/waits.lua. */
interface StoredAfter {
  readonly f: FailurePolicy;
  readonly t: TimeoutPolicy;
  readonly d: number;
}

const EDGE_STATES: Readonly<Record<string, EdgeState['state']>> = { '?': 'waiting', '+': 'succeeded', '-': 'failed' };

/** The reply of read-wait.lua; `undefined` for a task that has never waited. */
export function readWait([after, waits, cancelled, ...edges]: readonly Buffer[]): StoredWait | undefined {
  if (!after) return undefined;
  const { f, t, d } = readJson<StoredAfter>(String(after), { f: 'cancel', t: 'archive', d: 0 });
  return {
    edges: edges.map((edge) => readEdge(String(edge))),
    onFailure: f,
    onTimeout: t,
    deadline: String(waits) === '1' ? d : undefined,
    cancelled: String(cancelled) === '1',
  };
}

function readEdge(text: string): EdgeState {
  const [place, name, reason] = readJson<[string, string, string?]>(text.slice(1), ['?', '?']);
  const prerequisite: Prerequisite = place.startsWith('~')
    ? { type: place.slice(1), key: name }
    : { queue: place, id: name };
  const state = EDGE_STATES[text.slice(0, 1)] ?? 'waiting';
  return reason === undefined ? { prerequisite, state } : { prerequisite, state, reason };
}
