import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import type { Presenter } from '../../payload/presenter.js';
import { cut } from '../../payload/text.js';
import { amount, count, flag, listOf, orNull, shape, text, time } from '../schema.js';
import { toSubject } from './subject.js';

export const PROGRESS_SCHEMA = orNull({
  anyOf: [shape({ fraction: amount('from 0 to 1'), text: text('empty if there is none'), at: time() })],
});

/** What the handler of a task has said. */
export const NOTE_SCHEMAS = {
  progress: PROGRESS_SCHEMA,
  log: listOf(shape({ text: text(), at: time() })),
  log_dropped: count('older lines that are not kept any more'),
  chunks: text('a JSON array of the last ones, cut; empty if there are none'),
  chunk_count: count('how many of the last ones there are'),
  chunks_redacted: flag('whether a part of them is hidden or may be'),
};

export function showProgress(presenter: Presenter, task: TaskInfo) {
  const { progress } = task;
  if (!progress) return null;
  return {
    fraction: progress.fraction,
    text: presenter.presentSaid(task, progress.text ?? ''),
    at: progress.at.toISOString(),
  };
}

export function showNotes({ presenter, settings }: Dashboard, task: TaskInfo) {
  const { log, chunks = [] } = task;
  const seen = (said: string): string => presenter.presentSaid(task, said);
  const visible = chunks.length > 0 ? presenter.presentChunks(toSubject(task), JSON.stringify(chunks)) : undefined;
  return {
    progress: showProgress(presenter, task),
    log: (log?.lines ?? []).map((line) => ({ text: seen(line.text), at: line.at.toISOString() })),
    log_dropped: log?.dropped ?? 0,
    chunks: cut(visible?.text ?? '', settings.maxResultLength).text,
    chunk_count: chunks.length,
    chunks_redacted: visible?.isHidden ?? false,
  };
}
