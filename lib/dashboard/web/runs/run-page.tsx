import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { WorkflowRunWithGraph } from '../api/link-types.js';
import { perform } from '../live/perform.js';
import { When } from '../live/time.js';
import { Page } from '../pages/page.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { navigate, paths } from '../state/router.js';
import { plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { Text } from '../ui/text.js';
import { StepList } from './step-list.js';

interface RunProps {
  run: WorkflowRunWithGraph;
  reload: () => void;
}

type Asked = 'cancel' | 'delete';

function Ask({ run, asked, reload, onClose }: RunProps & { asked: Asked; onClose: () => void }) {
  const submit = async (): Promise<void> => {
    if (asked === 'cancel') await api.cancelRun(run.queue, run.id);
    else await api.deleteRun(run.queue, run.id);
    if (asked === 'delete') navigate(['workflows']);
    else reload();
  };
  const [title, does] =
    asked === 'cancel' ? ['Cancel this run?', 'Cancel the run'] : ['Delete this run?', 'Delete the run'];
  return (
    <FormDialog title={title} does={does} danger onSubmit={submit} onClose={onClose}>
      <p>
        {asked === 'cancel'
          ? 'What waits will not run, and tasks under way are cancelled.'
          : 'Its graph and its results are deleted. This cannot be undone.'}
      </p>
    </FormDialog>
  );
}

function Actions({ run, reload }: RunProps) {
  const may = useMay();
  const [asked, setAsked] = useState<Asked>();
  const mayAct = run.graph.every(({ queue }) => queue !== null && may('act', queue));
  const mayDelete = run.graph.every(({ queue }) => queue !== null && may('destroy', queue));
  const retry = async (): Promise<void> => {
    await perform('The failed steps run again.', () => api.retryRun(run.queue, run.id));
    reload();
  };
  return (
    <>
      {mayAct && run.failed > 0 && run.state !== 'cancelled' && (
        <Button kind="primary" onClick={retry}>
          Retry failed steps
        </Button>
      )}
      {mayAct && run.state === 'running' && <Button onClick={() => setAsked('cancel')}>Cancel…</Button>}
      {mayDelete && run.state !== 'running' && (
        <Button kind="danger" onClick={() => setAsked('delete')}>
          Delete…
        </Button>
      )}
      {asked && <Ask run={run} reload={reload} asked={asked} onClose={() => setAsked(undefined)} />}
    </>
  );
}

/** The picture needs a library that no other page does. */
function Graph({ run }: { run: WorkflowRunWithGraph }) {
  const [Drawn, setDrawn] = useState<FunctionComponent<{ run: WorkflowRunWithGraph }>>();
  useEffect(() => {
    // Without it the list below has everything.
    import('./graph.js').then(
      (module) => setDrawn(() => module.RunGraph),
      () => undefined,
    );
  }, []);
  return Drawn ? <Drawn run={run} /> : <div class="run-graph" />;
}

function Facts({ run }: { run: WorkflowRunWithGraph }) {
  return (
    <p class="run-facts">
      <StateChip state={run.state} /> {plural(run.steps, 'step')}, {run.open} open, {run.failed} failed · started{' '}
      <When at={run.started_at} />
      {run.ended_at !== null && (
        <>
          {' '}
          · ended <When at={run.ended_at} />
        </>
      )}
      {run.reason !== null && (
        <>
          {' '}
          · <Text value={run.reason} />
        </>
      )}
    </p>
  );
}

/** One run of a workflow: its graph, and the same as a list. */
export function RunPage({ queue, id }: { queue: string; id: string }) {
  const { data, error, reload } = useResource(`run ${queue} ${id}`, (signal) => api.workflowRun(queue, id, signal), {
    every: useRefreshInterval(1),
  });
  return (
    <Page
      title={visible(id)}
      above={<a href={paths.workflows()}>Workflows</a>}
      heading={<Text value={id} />}
      actions={data && <Actions run={data} reload={reload} />}
    >
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && (
        <>
          <Facts run={data} />
          <Graph run={data} />
          <StepList run={data} reload={reload} />
        </>
      )}
    </Page>
  );
}
