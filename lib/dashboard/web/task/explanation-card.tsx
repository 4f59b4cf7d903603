import { api } from '../api/endpoints.js';
import type { Reason, Task } from '../api/task-types.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { LongText, Text } from '../ui/text.js';

/** What holds a task changes more slowly than its state: it is read less often, as that takes several calls. */
const SLOWER = 4;

const Links = ({ tasks, queues }: Reason) => (
  <span class="faint">
    {tasks.map(({ queue, id }) => (
      <a key={JSON.stringify([queue, id])} href={paths.task(queue, id)}>
        <Text value={id} class="mono wrap" />{' '}
      </a>
    ))}
    {queues.map((queue) => (
      <a key={queue} href={paths.queue(queue)}>
        <Text value={queue} />{' '}
      </a>
    ))}
  </span>
);

/** Why a task does not run, unless it is over. */
export function ExplanationCard({ queue, id, state }: Pick<Task, 'queue' | 'id' | 'state'>) {
  const isOver = state === 'completed' || state === 'archived';
  const { data, error } = useResource(
    JSON.stringify([queue, id, state]),
    (signal) => api.explanation(queue, id, signal),
    { every: useRefreshInterval(SLOWER), hold: isOver },
  );
  if (isOver || error?.status === 404) return null;
  const title = state === 'active' ? 'Where it runs' : 'Why is it not running?';
  return (
    <section class="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      {data ? (
        <ol class="waits">
          {data.reasons.map((reason) => (
            <li key={reason.kind + reason.text}>
              <LongText value={reason.text} /> <Links {...reason} />
            </li>
          ))}
        </ol>
      ) : (
        <p class="faint">{error ? error.message : 'Reading …'}</p>
      )}
    </section>
  );
}
