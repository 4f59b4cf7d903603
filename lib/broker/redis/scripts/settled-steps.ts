import type { Settlement } from '../../broker.js';
import { packTexts } from './packed-texts.js';
import { isPlain } from './settlements.js';
import { type StepsOfRun, TaskLease } from './task-lease.js';

/** There may be further steps among the settlements. */
const UNKNOWN = '1';

/** Steps of a run that have succeeded: names and results, in turn. */
interface Ended {
  readonly steps: StepsOfRun;
  readonly texts: (string | Buffer)[];
}

/**
 * The steps of runs of this place that have just succeeded and that only their runs watch, as take_steps of run-successes.lua reads them. Empty when there
 * are none.
 */
export function encodeSettledSteps(settle: readonly Settlement[]): Buffer | '' {
  const groups: Ended[] = [];
  let current: Ended | undefined;
  let unknown = false;
  for (const item of settle) {
    const step = TaskLease.stepOf(item.lease);
    if (step === null || !isPlain(item)) continue;
    if (step === undefined) {
      unknown = true;
      continue;
    }
    const { steps, name } = step;
    if (current?.steps !== steps) groups.push((current = { steps, texts: [] }));
    current.texts.push(`s:${name}`, item.result ?? '');
  }
  if (groups.length === 0 && !unknown) return '';
  const packed: (string | Buffer)[] = [unknown ? UNKNOWN : ''];
  for (const { steps, texts } of groups) {
    packed.push(steps.run, steps.hint, steps.idPrefix, String(texts.length / 2));
    for (const text of texts) packed.push(text);
  }
  return packTexts(packed);
}
