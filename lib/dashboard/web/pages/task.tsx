import { useMemo, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Task } from '../api/task-types.js';
import { type JsonNode, nodeAt, parseJson } from '../json/parse.js';
import { useRefreshInterval } from '../state/config.js';
import { type Resource, useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { AttemptsCard } from '../task/attempts-card.js';
import { ExplanationCard } from '../task/explanation-card.js';
import { NotesCard } from '../task/notes-card.js';
import { TaskActions } from '../task/task-actions.js';
import { StepsCard } from '../task/steps-card.js';
import { WaitCard } from '../task/wait-card.js';
import { ErrorCard, Details, Headers, Timeline } from '../task/task-cards.js';
import { Content } from '../ui/content.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';

const decodedOf = (task: Task, tree: JsonNode | undefined, name: 'payload_decoded' | 'result_decoded') => {
  const node = nodeAt(tree, name, 'value');
  return task[name] && node ? { decoder: task[name].decoder, node } : undefined;
};

const downloadOf = (task: Task, part: 'payload' | 'result'): string | undefined =>
  task[`${part}_redacted`] || task[`${part}_size`] === 0 ? undefined : api.download(task.queue, task.id, part);

interface BodyProps {
  queue: string;
  id: string;
  task: Task;
  tree: JsonNode | undefined;
  reload: () => void;
}

/** @param queue where it is; its message may name another */
function Body({ queue, id, task, tree, reload }: BodyProps) {
  return (
    <div class="task-grid">
      <div class="stack">
        {task.error_message !== '' && <ErrorCard task={task} />}
        <AttemptsCard task={task} />
        <NotesCard task={task} />
        <StepsCard queue={queue} id={id} state={task.state} onDone={reload} />
        <Content
          title="Payload"
          size={task.payload_size}
          base64={task.payload_base64}
          text={task.payload}
          redacted={task.payload_redacted}
          decoded={decodedOf(task, tree, 'payload_decoded')}
          tooLarge={task.payload_too_large === true}
          download={downloadOf(task, 'payload')}
        />
        {task.result_size > 0 && (
          <Content
            title="Result"
            size={task.result_size}
            base64={task.result_base64}
            text={task.result}
            redacted={task.result_redacted}
            decoded={decodedOf(task, tree, 'result_decoded')}
            tooLarge={task.result_base64 === null && !task.result_redacted}
            download={downloadOf(task, 'result')}
          />
        )}
      </div>
      <div class="stack">
        <ExplanationCard queue={queue} id={id} state={task.state} />
        {task.waits && <WaitCard wait={task.waits} />}
        <Details task={task} />
        <Timeline task={task} />
        <Headers headers={task.headers} />
      </div>
    </div>
  );
}

/** A task that is gone stays visible as it was last read. */
function Gone({ resource }: { resource: Resource<string> }) {
  const { error } = resource;
  if (!error || error.isAway) return null;
  return (
    <p class="notice-line" role="status">
      {error.status === 404
        ? 'This task is gone: it was completed without retention, or deleted. This is what it last looked like.'
        : error.message}
    </p>
  );
}

const Missing = ({ queue }: { queue: string }) => (
  <Empty title="There is no such task">
    It was completed without retention, it was deleted, or it never existed.{' '}
    <a href={paths.queue(queue)}>Go to its queue</a>
  </Empty>
);

export function TaskPage({ queue, id }: { queue: string; id: string }) {
  const [deleting, setDeleting] = useState(false);
  const resource = useResource(JSON.stringify([queue, id]), (signal) => api.task(queue, id, signal), {
    every: useRefreshInterval(1.5),
    hold: deleting,
  });
  const { data, error, reload } = resource;
  const task = useMemo(() => (data === undefined ? undefined : (JSON.parse(data) as Task)), [data]);
  const tree = useMemo(() => (data === undefined ? undefined : parseJson(data)), [data]);
  const above = (
    <>
      <a href={paths.queue(queue)}>
        <Text value={queue} />
      </a>{' '}
      / {task ? <a href={paths.list(queue, task.state, { group: task.group || undefined })}>{task.state}</a> : 'task'}
    </>
  );
  const heading = task && (
    <>
      <Text value={task.type} /> <StateChip state={task.state} />
    </>
  );
  const gone = error?.status === 404;
  return (
    <Page
      title={task ? `${task.type} ${id}` : id}
      above={above}
      heading={heading}
      actions={task && !gone && <TaskActions task={task} onDone={reload} onDeleting={setDeleting} />}
    >
      {task && <Gone resource={resource} />}
      {task && <Body queue={queue} id={id} task={task} tree={tree} reload={reload} />}
      {!task && gone && <Missing queue={queue} />}
      {!task && error && !gone && <Failure error={error} retry={reload} />}
      {!task && !error && <Loading rows={6} />}
    </Page>
  );
}
