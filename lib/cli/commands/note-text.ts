import type { TaskInfo } from '../../task/info.js';
import { formatMoment, formatTime } from '../../words/when.js';

/** Lines of a log that are shown; `--json` has all. */
const SHOWN_LINES = 20;

/** What the handler of a task has said. */
export function noteFieldsOf({ progress, log, chunks }: TaskInfo, now: number): [title: string, value: string][] {
  const fields: [string, string][] = [];
  if (progress) {
    const text = progress.text === undefined ? '' : ` ${progress.text}`;
    fields.push(['Progress', `${Math.floor(progress.fraction * 100)} %${text}, ${formatMoment(progress.at, now)}`]);
  }
  const lines = log?.lines.slice(-SHOWN_LINES) ?? [];
  const before = log ? log.dropped + log.lines.length - lines.length : 0;
  if (before > 0) fields.push(['Log', `(${before} lines before these)`]);
  for (const { at, text } of lines) fields.push(['Log', `${formatTime(at)} ${text}`]);
  if (chunks) fields.push(['Chunks', `${chunks.length}, the last: ${JSON.stringify(chunks.at(-1))}`]);
  return fields;
}
