import { useEffect } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { STATES, type State } from '../api/types.js';
import { HistoryPage } from '../history/history-page.js';
import { follow } from '../live/live.js';
import { AuditPage } from '../pages/audit.js';
import { EnqueuePage } from '../pages/enqueue.js';
import { OutboxPage } from '../pages/outbox.js';
import { Overview } from '../pages/overview.js';
import { Page } from '../pages/page.js';
import { QueuePage } from '../pages/queue.js';
import { RedisPage } from '../pages/redis.js';
import { SchedulePage } from '../pages/schedule.js';
import { SchedulesPage } from '../pages/schedules.js';
import { ServersPage } from '../pages/servers.js';
import { TaskPage } from '../pages/task.js';
import { BatchesPage } from '../runs/batches-page.js';
import { RunPage } from '../runs/run-page.js';
import { RunsPage } from '../runs/runs-page.js';
import { config } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths, type Route, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { Notices } from '../ui/notices.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { Help } from './help.js';
import { listenToKeys } from './keys.js';
import { Shell } from './shell.js';

const Unknown = () => (
  <Page title="No such page">
    <Empty title="This page does not exist">
      <a href={paths.overview()}>Go to the overview</a>
    </Empty>
  </Page>
);

const isState = (text: string): text is State => (STATES as readonly string[]).includes(text);

function queueRoute([, queue, part, id]: readonly string[]) {
  if (queue === undefined) return <Unknown />;
  if (part === 'tasks' && id !== undefined) return <TaskPage key={`${queue} ${id}`} queue={queue} id={id} />;
  if (part === undefined) return <QueuePage key={queue} queue={queue} />;
  if (isState(part) && id === undefined) return <QueuePage key={queue} queue={queue} state={part} />;
  if (part === 'locks' && id === undefined) return <QueuePage key={queue} queue={queue} part="locks" />;
  if (part === 'keys' && id === undefined) return <QueuePage key={queue} queue={queue} part="keys" />;
  return <Unknown />;
}

function workflowRoute([, queue, id]: readonly string[]) {
  if (queue === undefined) return <RunsPage />;
  return id === undefined ? <Unknown /> : <RunPage key={`${queue} ${id}`} queue={queue} id={id} />;
}

function Current({ route }: { route: Route }) {
  switch (route.path[0]) {
    case undefined:
      return <Overview />;
    case 'queues':
      return queueRoute(route.path);
    case 'servers':
      return <ServersPage />;
    case 'schedules':
      return route.path[1] === undefined ? <SchedulesPage /> : <SchedulePage key={route.path[1]} id={route.path[1]} />;
    case 'workflows':
      return workflowRoute(route.path);
    case 'batches':
      return <BatchesPage />;
    case 'audit':
      return <AuditPage />;
    case 'outbox':
      return config.get()?.outbox ? <OutboxPage /> : <Unknown />;
    case 'redis':
      return <RedisPage />;
    case 'history':
      return config.get()?.prometheus ? <HistoryPage /> : <Unknown />;
    case 'enqueue':
      return <EnqueuePage />;
    default:
      return <Unknown />;
  }
}

function Start() {
  const { data, error, reload } = useResource('config', (signal) => api.config(signal));
  useEffect(() => config.set(data), [data]);
  useEffect(() => {
    if (!error?.isAway) return;
    const timer = window.setTimeout(reload, 2000);
    return () => window.clearTimeout(timer);
  }, [error]);
  return error ? <Failure error={error} retry={reload} /> : <Loading />;
}

export function App() {
  const route = useRoute();
  const current = useStore(config);
  useEffect(listenToKeys, []);
  useEffect(() => (current ? follow(current.refresh_ms) : undefined), [current]);
  return (
    <>
      <Shell>{current ? <Current route={route} /> : <Start />}</Shell>
      <Help />
      <Notices />
    </>
  );
}
