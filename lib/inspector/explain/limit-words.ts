import { formatDuration, formatMoment } from '../../words/when.js';
import type { LimitHolder, ReachedLimit, TaskReason } from './reasons.js';

type LimitReason = Extract<TaskReason, { kind: 'handlerLimit' | 'queueLimit' }>;

/** A limit of a handler or a queue in words. @param now milliseconds since the epoch */
export function limitText(reason: LimitReason, now: number): string {
  const owner = reason.kind === 'queueLimit' ? 'its queue' : ownerOf(reason.scope);
  const texts = reason.reached.map((limit) => REACHED[limit](reason));
  const reached = texts.length > 0 ? `A limit of ${owner} is reached: ${texts.join('; ')}.` : '';
  const opens = reason.opensAt ? ` More may start at ${formatMoment(reason.opensAt, now)}.` : '';
  if (reason.kind === 'queueLimit') return reached + opens;
  return [reached + opens, holdersText(reason.holders, reason.running), deferredText(reason, owner, now)]
    .filter((text) => text !== '')
    .join(' ');
}

const ownerOf = (scope: string | undefined): string => `its handler${scope === undefined ? '' : ` ("${scope}")`}`;

const REACHED: Readonly<Record<ReachedLimit, (reason: LimitReason) => string>> = {
  concurrency: ({ limits }) => `${limits.concurrency} at a time in each server`,
  globalConcurrency: ({ limits, running }) =>
    `${limits.globalConcurrency} at a time in all servers, and ${running} count`,
  rateLimit: ({ limits, left }) =>
    left === undefined
      ? `${limits.rate} starts per ${formatDuration(limits.window ?? 0)}`
      : `tasks may cost ${limits.rate} per ${formatDuration(limits.window ?? 0)}, and ${left} is left`,
};

/** Who has the places of a limit. @param running how many there are */
export function holdersText(holders: readonly LimitHolder[], running: number): string {
  if (holders.length === 0) return '';
  const named = holders.map(({ queue, id }) => (queue === '' ? `"${id}"` : `task ${id} in queue "${queue}"`));
  const more = running > named.length ? ` and ${running - named.length} more` : '';
  return `Its places are held by ${named.join(', ')}${more}.`;
}

function deferredText(
  { deferred, ahead, retryAt, reached }: Extract<LimitReason, { kind: 'handlerLimit' }>,
  owner: string,
  now: number,
): string {
  if (!deferred) return 'A server that takes it puts it aside until there is room.';
  const others = ahead === 0 ? 'as the next' : `behind ${ahead} ${ahead === 1 ? 'other' : 'others'}`;
  const again = retryAt ? `, and is tried again at ${formatMoment(retryAt, now)} at the latest` : '';
  const why = reached.length > 0 ? '' : ` of ${owner}`;
  return `It waits for room${why}, ${others}${again}.`;
}
