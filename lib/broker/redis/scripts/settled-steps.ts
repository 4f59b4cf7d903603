import type { Settlement } from '../../broker.js';
import { packTexts } from './packed-texts.js';
import { ENDED_AT, HINT_NAMES_AT, HINT_STEP_AT, POLICY_AT, STEP_SIZE } from './run-layout.js';
import { isPlain } from './settlements.js';
import { type StepsOfRun, TaskLease } from './task-lease.js';

/** There may be further steps among the settlements; there are none, and some are marked. */
const [UNKNOWN, SOME_MARKED] = ['1', '2'];
/** Others of the run have other steps next to them; some have no result. */
const [GATHERED, LACKING] = ['1', '2'];

const SUCCEEDED = 's'.charCodeAt(0);
const SUCCEEDED_WITH_RESULT = 'S'.charCodeAt(0);

/** Steps of a run that have succeeded and have the same steps next to them. */
class Ended {
  /** Four texts each: field and value of the step, field and value of its result. */
  readonly texts: (string | Buffer)[] = [];
  lacking = false;
  /** What is written of the steps that began together, without and with a result. */
  private without: Buffer | undefined;
  private withResult: Buffer | undefined;

  constructor(
    public steps: StepsOfRun,
    private readonly now: number,
  ) {}

  /** Takes the next steps, unless they are of another run of this id, or have other steps next to them. */
  accepts(steps: StepsOfRun): boolean {
    const { hint } = this.steps;
    if (hint.length !== steps.hint.length || !isSame(hint, steps.hint, 0, HINT_STEP_AT)) return false;
    if (!isSame(hint, steps.hint, HINT_NAMES_AT, hint.length)) return false;
    this.steps = steps;
    this.without = this.withResult = undefined;
    return true;
  }

  add(name: string, result: string | Buffer | undefined): void {
    if (result?.length) {
      this.withResult ??= this.pack(SUCCEEDED_WITH_RESULT);
      this.texts.push(`s:${name}`, this.withResult, `v:${name}`, result);
    } else {
      this.without ??= this.pack(SUCCEEDED);
      this.texts.push(`s:${name}`, this.without, `v:${name}`, '');
      this.lacking = true; // the task may have a result of its own
    }
  }

  /** As STEP of shared/runs.lua has it: policy, flags and since when it was ready are in the hint. */
  private pack(state: number): Buffer {
    const bytes = Buffer.alloc(STEP_SIZE);
    bytes[0] = state;
    bytes.writeDoubleLE(this.now, ENDED_AT);
    this.steps.hint.copy(bytes, POLICY_AT, HINT_STEP_AT, HINT_NAMES_AT);
    return bytes;
  }
}

function isSame(one: Buffer, other: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (one[i] !== other[i]) return false;
  return true;
}

/**
 * The steps of runs of this place that have just succeeded and that only their runs watch, as run-successes.lua reads them: see `taken` there. Empty when
 * there are none.
 *
 * @param now milliseconds since the epoch
 */
export function encodeSettledSteps(settle: readonly Settlement[], now: number): Buffer | '' {
  const runs = new Map<string, Ended[]>();
  let current: Ended | undefined;
  let unknown = false;
  let count = 0;
  for (const item of settle) {
    const step = TaskLease.stepOf(item.lease);
    if (step === null || !isPlain(item)) continue;
    if (step === undefined) {
      unknown = true;
      continue;
    }
    const { steps, name } = step;
    if (current?.steps !== steps) current = groupOf(steps, runs, Math.floor(now));
    current.add(name, item.result);
    count++;
  }
  if (count === 0 && !unknown) return '';
  const packed: (string | Buffer)[] = [unknown ? UNKNOWN : '', String(count)];
  for (const groups of runs.values()) {
    for (const { steps, texts, lacking } of groups) {
      const { run, hint, idPrefix } = steps;
      const mark = groups.length > 1 ? GATHERED : lacking ? LACKING : '';
      if (mark && !unknown) packed[0] = SOME_MARKED;
      packed.push(run, hint.subarray(0, HINT_STEP_AT), idPrefix, hint.subarray(HINT_NAMES_AT));
      packed.push(String(texts.length / 4), mark);
      for (const text of texts) packed.push(text);
    }
  }
  return packTexts(packed);
}

function groupOf(steps: StepsOfRun, runs: Map<string, Ended[]>, now: number): Ended {
  const groups = runs.get(steps.run);
  const found = groups?.find((group) => group.accepts(steps));
  if (found) return found;
  const group = new Ended(steps, now);
  if (groups) groups.push(group);
  else runs.set(steps.run, [group]);
  return group;
}
