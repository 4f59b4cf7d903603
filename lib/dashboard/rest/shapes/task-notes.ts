import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { cut } from '../../payload/text.js';
import { amount, count, flag, listOf, orNull, shape, text, time } from '../schema.js';
import { toSubject } from './listed-task.js';

/** What the handler of a task has said. */
export const NOTE_SCHEMAS = {
  progress: orNull({
    anyOf: [shape({ fraction: amount('from 0 to 1'), text: text('empty if there is none'), at: time() })],
  }),
  log: listOf(shape({ text: text(), at: time() })),
  log_dropped: count('older lines that are not kept any more'),
  chunks: text('a JSON array of the last ones, cut; empty if there are none'),
  chunk_count: count('how many of the last ones there are'),
  chunks_redacted: flag('whether a part of them is hidden or may be'),
};

export function showNotes({ presenter, settings }: Dashboard, task: TaskInfo) {
  const { progress, log, chunks = [] } = task;
  const seen = (said: string): string => presenter.presentSaid(task, said);
  const visible = chunks.length > 0 ? presenter.presentChunks(toSubject(task), JSON.stringify(chunks)) : undefined;
  return {
    progress: progress
      ? { fraction: progress.fraction, text: seen(progress.text ?? ''), at: progress.at.toISOString() }
      : null,
    log: (log?.lines ?? []).map((line) => ({ text: seen(line.text), at: line.at.toISOString() })),
    log_dropped: log?.dropped ?? 0,
    chunks: cut(visible?.text ?? '', settings.maxResultLength).text,
    chunk_count: chunks.length,
    chunks_redacted: visible?.isHidden ?? false,
  };
}
