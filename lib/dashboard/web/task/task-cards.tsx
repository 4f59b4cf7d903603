import type { ComponentChildren } from 'preact';
import type { Task } from '../api/task-types.js';
import { useNow } from '../live/clock.js';
import { Elapsed, When } from '../live/time.js';
import { paths } from '../state/router.js';
import { duration, instant } from '../text/format.js';
import { Copy } from '../ui/copy.js';
import { LongText, Text } from '../ui/text.js';

export const ErrorCard = ({ task }: { task: Task }) => (
  <section class="card error-card" aria-label="Last error">
    <header>
      <h2>Last error</h2>
      <span class="faint">
        <When at={task.last_failed_at} none="" />
      </span>
    </header>
    <pre class="raw problem-text">
      <LongText value={task.error_message} lines />
    </pre>
  </section>
);

const time = (seconds: number, none: string): string => (seconds > 0 ? duration(seconds) : none);

const Group = ({ task }: { task: Task }) =>
  task.state === 'aggregating' ? (
    <a href={paths.list(task.queue, 'aggregating', { group: task.group })}>
      <Text value={task.group} />
    </a>
  ) : (
    <Text value={task.group} />
  );

const pendingFor = ({ pending_since }: Task): [string, ComponentChildren] => [
  'pending for',
  pending_since ? <Elapsed key="pending" since={pending_since} /> : 'unknown',
];

const heldBy = ({ held_by, held_since }: Task): [string, ComponentChildren][] => [
  ['held by', held_by ? <Text key="by" value={held_by} class="wrap" /> : 'unknown'],
  ['held for', held_since ? <Elapsed key="held" since={held_since} /> : 'unknown'],
];

const crashes = ({ crashes: count, last_crashes }: Task): [string, ComponentChildren] => [
  'its server has died',
  <span key="crashes">
    {count === 1 ? 'once' : `${count} times`}
    {last_crashes.map(({ at, servers, others }) => (
      <div key={at}>
        <When at={at} none="" /> <Text value={servers.join(' or ') || 'on an unknown server'} class="wrap" />,{' '}
        {others === 0 ? 'alone' : `with ${others} or more others`}
      </div>
    ))}
  </span>,
];

function details(task: Task): [string, ComponentChildren][] {
  const { worker } = task;
  return [
    [
      'id',
      <span key="id" class="with-copy">
        <Text value={task.id} class="mono wrap" /> <Copy text={task.id} what="id" />
      </span>,
    ],
    ['queue', <Text key="queue" value={task.queue} class="wrap" />],
    ...(task.group ? [['group', <Group key="group" task={task} />] as [string, ComponentChildren]] : []),
    ['retries', `${task.retried} of ${task.max_retry} used`],
    ...(task.crashes > 0 ? [crashes(task)] : []),
    ...(task.state === 'pending' ? [pendingFor(task)] : []),
    ...(task.state === 'held' ? heldBy(task) : []),
    ['time limit', time(task.timeout_seconds, 'none')],
    ['deadline', <When key="deadline" at={task.deadline} none="none" />],
    ...(task.expires_at
      ? [
          ['expires, unless begun', <When key="expires" at={task.expires_at} none="no" />] as [
            string,
            ComponentChildren,
          ],
        ]
      : []),
    ['kept when completed', time(task.retention_seconds, 'no')],
    ...(worker
      ? ([
          ['runs on', <Text key="worker" value={`${worker.host} (pid ${worker.pid})`} class="wrap" />],
          ['running for', <Elapsed key="elapsed" since={worker.started_at} />],
        ] as [string, ComponentChildren][])
      : []),
  ];
}

export const Details = ({ task }: { task: Task }) => (
  <section class="card" aria-label="Task">
    <dl class="pairs">
      {details(task).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  </section>
);

const DUE: Readonly<Partial<Record<Task['state'], string>>> = {
  retry: 'next try',
  waiting: 'end of the wait',
  held: 'next try at the latest',
};

function events(task: Task): [string, number][] {
  const kept = task.state === 'completed' && task.ttl_seconds > 0;
  const completed = instant(task.completed_at);
  const all: [string, number | undefined][] = [
    ['enqueued', instant(task.enqueued_at)],
    ['last failed', instant(task.last_failed_at)],
    ['started', instant(task.worker?.started_at)],
    ['pending', instant(task.pending_since)],
    ['held', instant(task.held_since)],
    // A pending task is always due now.
    [DUE[task.state] ?? 'due', task.state === 'pending' ? undefined : instant(task.next_process_at)],
    ['stopped by its time limit', instant(task.worker?.deadline)],
    ['completed', completed],
    ['deleted', kept && completed !== undefined ? completed + task.retention_seconds * 1000 : undefined],
    ['deadline', instant(task.deadline)],
  ];
  return all.filter((event): event is [string, number] => event[1] !== undefined).sort((a, b) => a[1] - b[1]);
}

/** The known times of a task. */
export function Timeline({ task }: { task: Task }) {
  const now = useNow();
  const all = events(task);
  if (all.length === 0) return null;
  return (
    <section class="card" aria-label="Timeline">
      <header>
        <h2>Timeline</h2>
      </header>
      <ol class="timeline">
        {all.map(([name, at]) => (
          <li key={name} class={at > now ? 'ahead' : ''}>
            <b>{name}</b>
            <When at={new Date(at).toISOString()} />
          </li>
        ))}
      </ol>
    </section>
  );
}

export function Headers({ headers }: { headers: Readonly<Record<string, string>> }) {
  const all = Object.entries(headers ?? {});
  if (all.length === 0) return null;
  return (
    <section class="card" aria-label="Headers">
      <header>
        <h2>Headers</h2>
      </header>
      <dl class="pairs">
        {all.map(([name, value]) => (
          <div key={name}>
            <dt>
              <Text value={name} class="wrap" />
            </dt>
            <dd class="mono wrap">
              <LongText value={value} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
