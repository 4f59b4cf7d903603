import { formatDuration, formatMoment } from '../../words/when.js';
import { holdersText } from './limit-words.js';
import type { TaskReason } from './reasons.js';

type Of<K extends TaskReason['kind']> = Extract<TaskReason, { kind: K }>;

const ownerOf = (key: string): string => (key === '' ? 'the tasks without a key' : `its key "${key}"`);

/** Its place in the line of its key, in words. */
export function turnText({ key, ahead, others }: Of<'keyTurn'>): string {
  const place = ahead === 0 ? 'as the next of them' : `behind ${ahead} of them`;
  const line = `It waits in the line of ${key === '' ? 'the tasks without a key' : `the tasks of key "${key}"`}, ${place}`;
  return others === 0
    ? `${line}.`
    : `${line}, which takes turns with ${others} other ${others === 1 ? 'key' : 'keys'}.`;
}

/** A limit of its key, in words. @param now milliseconds since the epoch */
export function keyLimitText({ key, reached, ...reason }: Of<'keyLimit'>, now: number): string {
  const { concurrency, rate, running, holders, opensAt } = reason;
  const when = opensAt === undefined ? '' : ` at ${formatMoment(opensAt, now)}`;
  if (reached.length === 0)
    return `A limit of ${ownerOf(key)} was reached, and there is room again: it is looked at${when}.`;
  const texts = reached.map((limit) =>
    limit === 'concurrency'
      ? `${concurrency} at a time, and ${running} ${running === 1 ? 'has' : 'have'} a slot`
      : `${rate?.max} starts per ${formatDuration(rate?.per ?? 0)}`,
  );
  const more = opensAt === undefined ? '' : ` More may start${when}.`;
  const held = holdersText(holders, running);
  return `A limit of ${ownerOf(key)} is reached: ${texts.join('; ')}.${more}${held === '' ? '' : ` ${held}`}`;
}
