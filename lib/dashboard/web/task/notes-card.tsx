import type { Task } from '../api/task-types.js';
import { When } from '../live/time.js';
import { ProgressBar } from '../ui/progress.js';
import { LongText } from '../ui/text.js';

function Progress({ progress }: { progress: NonNullable<Task['progress']> }) {
  return (
    <div class="progress">
      <ProgressBar progress={progress} />
      <span class="faint">
        <When at={progress.at} none="" />
      </span>
    </div>
  );
}

function Log({ lines, dropped }: { lines: Task['log']; dropped: number }) {
  return (
    <ol class="log" aria-label="Log">
      {dropped > 0 && <li class="faint">{dropped} older lines are not kept any more</li>}
      {lines.map(({ text, at }, index) => (
        <li key={index}>
          <span class="faint">
            <When at={at} none="" />
          </span>{' '}
          <LongText value={text} />
        </li>
      ))}
    </ol>
  );
}

function Chunks({ task }: { task: Task }) {
  return (
    <>
      <h3>
        Chunks, the last {task.chunk_count}
        {task.chunks_redacted && <span class="faint"> (redacted)</span>}
      </h3>
      <pre class="raw">
        <LongText value={task.chunks} lines />
      </pre>
    </>
  );
}

/** What the handler of a task has said; nothing when it has not. */
export function NotesCard({ task }: { task: Task }) {
  const { progress, log, log_dropped: dropped, chunk_count: chunks } = task;
  if (!progress && log.length + dropped + chunks === 0) return null;
  return (
    <section class="card" aria-label="Progress and log">
      <header>
        <h2>Progress and log</h2>
      </header>
      {progress && <Progress progress={progress} />}
      {log.length + dropped > 0 && <Log lines={log} dropped={dropped} />}
      {chunks > 0 && <Chunks task={task} />}
    </section>
  );
}
