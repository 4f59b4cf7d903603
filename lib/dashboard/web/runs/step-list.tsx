import { api } from '../api/endpoints.js';
import type { WorkflowRunWithGraph, WorkflowStep } from '../api/link-types.js';
import { useNow } from '../live/clock.js';
import { perform } from '../live/perform.js';
import { useMay } from '../state/config.js';
import { paths } from '../state/router.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { StateChip } from '../ui/state.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { durationOf, lateText, waitText } from './step-text.js';

function Name({ step }: { step: WorkflowStep }) {
  const hasTask = step.queue !== null && (step.state === 'ready' || step.state === 'failed');
  const name = <Text value={step.name} titled class="cut" />;
  return (
    <th scope="row" class="task">
      {hasTask ? (
        <a href={paths.task(step.queue!, step.task_id)} data-open>
          {name}
        </a>
      ) : (
        name
      )}
      {step.type !== null && <Text value={step.type} titled class="cut mono id" />}
    </th>
  );
}

function Row({ step, now, reload }: { step: WorkflowStep; now: number; reload: () => void }) {
  const may = useMay();
  const { queue, task_id: id } = step;
  const late = lateText(step, now);
  const retry = async (): Promise<void> => {
    await perform(`Step “${visible(step.name)}” runs again.`, () => api.run({ queue: queue!, id, state: 'archived' }));
    reload();
  };
  return (
    <tr data-row>
      <Name step={step} />
      <td data-label="state">
        <StateChip state={step.state} />
        {step.optional && <span class="flag">optional</span>}
        {late !== '' && (
          <span class="flag bad" title={late}>
            late
          </span>
        )}
      </td>
      <td data-label="queue">
        {queue === null ? <span class="none">hidden</span> : <Text value={queue} titled class="cut" />}
      </td>
      <td data-label="waits for" class="wide">
        {step.after.length === 0 ? <span class="none">–</span> : <Text value={waitText(step)} titled class="cut" />}
      </td>
      <td class="number" data-label="took">
        {durationOf(step, now) || <span class="none">–</span>}
      </td>
      <td data-label="error" class="wide">
        {step.error === null ? <span class="none">–</span> : <Text value={step.error} titled class="cut" />}
      </td>
      {may('act') && (
        <td class="row-actions">
          {step.state === 'failed' && queue !== null && may('act', queue) && (
            <Button small onClick={retry} label={`Run again: step ${visible(step.name)}`}>
              Run again
            </Button>
          )}
        </td>
      )}
    </tr>
  );
}

/** The steps of a run in their order. */
export function StepList({ run, reload }: { run: WorkflowRunWithGraph; reload: () => void }) {
  const may = useMay();
  const now = useNow();
  const heads = ['step', 'state', 'queue', 'waits for', ...numberHeads('took'), 'error'];
  return (
    <div class="table-card">
      <table class="grid-table cards tasks steps">
        <TableHead heads={[...heads, ...(may('act') ? [ACTIONS_HEAD] : [])]} />
        <tbody>
          {run.graph.map((step) => (
            <Row key={step.name} step={step} now={now} reload={reload} />
          ))}
        </tbody>
      </table>
    </div>
  );
}
