import type { Prerequisite, Task, TaskWait } from '../api/task-types.js';
import { When } from '../live/time.js';
import { paths } from '../state/router.js';
import { plural } from '../text/format.js';
import { Text } from '../ui/text.js';

/** How many are shown: a task may wait for a thousand. Failed ones come first. */
const MAX_SHOWN = 50;

const ORDER = ['failed', 'waiting', 'succeeded'];

const COLORS = { waiting: 'waiting', succeeded: 'completed', failed: 'archived' } as const;

const Name = ({ one }: { one: Prerequisite }) =>
  one.queue !== null && one.id !== null ? (
    <a href={paths.task(one.queue, one.id)}>
      <Text value={one.id} class="mono wrap" />
    </a>
  ) : (
    <span class="wrap">
      <Text value={one.type ?? ''} /> {one.key === null ? '(key hidden)' : <Text value={one.key} class="mono" />}
    </span>
  );

const Row = ({ one }: { one: Prerequisite }) => (
  <li>
    <span class={`chip color-${COLORS[one.state]}`}>{one.state}</span> <Name one={one} />
    {one.paused && <span class="faint">its queue is paused</span>}
    {one.reason !== '' && <Text value={one.reason} class="wrap problem-text" />}
  </li>
);

function sentence({ on_failure, on_timeout, cancelled }: TaskWait): string {
  if (cancelled) return 'Archived, because one of these failed. It is revived when that one succeeds after all.';
  const failing = { cancel: 'is archived', run: 'runs all the same', wait: 'goes on waiting' }[on_failure];
  return `If one of these fails, the task ${failing}. At the end of its wait, it ${on_timeout === 'run' ? 'runs' : 'is archived'}.`;
}

/** What a task waits for, and why it still does. */
export function WaitCard({ wait }: { wait: Exclude<Task['waits'], null> }) {
  const sorted = [...wait.prerequisites].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const more = sorted.length - MAX_SHOWN;
  return (
    <section class="card" aria-label="Waits for">
      <header>
        <h2>{wait.cancelled ? 'Waited for' : 'Waits for'}</h2>
        {wait.until !== null && (
          <span class="faint">
            until <When at={wait.until} none="" />
          </span>
        )}
      </header>
      <ul class="waits">
        {sorted.slice(0, MAX_SHOWN).map((one) => (
          <Row key={JSON.stringify([one.queue, one.id, one.type, one.key])} one={one} />
        ))}
      </ul>
      {more > 0 && <p class="faint">and {plural(more, 'more task')}</p>}
      <p class="faint">{sentence(wait)}</p>
    </section>
  );
}
