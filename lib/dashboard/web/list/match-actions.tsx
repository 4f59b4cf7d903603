import { useRef, useState } from 'preact/hooks';
import type { BulkAction, ListScope } from '../api/endpoints.js';
import { refreshLive } from '../live/live.js';
import { count, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { ActionButtons, useBulkActions } from './action-bars.js';
import { LABELS, matchResult, WARNINGS } from './bulk-actions.js';
import type { Filters } from './filters.js';
import { actOnMatches, type Count, type MatchProgress, useCount } from './matching.js';

interface MatchActionsProps {
  scope: ListScope;
  filters: Filters;
  /** How many tasks the search has found so far. */
  found: number;
  /** How many tasks are in the list; undefined: not known. */
  total: number | undefined;
  onDone: () => void;
}

/**
 * Acts on all tasks that match the filters, also where the search has not been yet. They are
 * counted first.
 */
export function MatchActions({ scope, filters, found, total, onDone }: MatchActionsProps) {
  const actions = useBulkActions(scope);
  const [asked, setAsked] = useState<BulkAction>();
  if (found === 0 || actions.length === 0) return null;
  return (
    <div class="all-actions">
      <span class="faint">all that match:</span>
      <ActionButtons actions={actions} what="all that match" onPress={setAsked} />
      {asked && (
        <MatchDialog
          action={asked}
          scope={scope}
          filters={filters}
          total={total}
          onDone={onDone}
          onClose={() => setAsked(undefined)}
        />
      )}
    </div>
  );
}

interface MatchDialogProps extends Omit<MatchActionsProps, 'found'> {
  action: BulkAction;
  onClose: () => void;
}

function MatchDialog({ action, scope, filters, total, onDone, onClose }: MatchDialogProps) {
  const counted = useCount(scope, filters);
  const [progress, setProgress] = useState<MatchProgress>();
  const stopped = useRef(false);
  const act = async (): Promise<void> => {
    let last: MatchProgress = { done: 0, skipped: 0, ended: false };
    const report = (now: MatchProgress): void => setProgress((last = now));
    setProgress(last);
    try {
      const job = { scope, filters, action, before: counted.at! };
      await actOnMatches(job, report, () => stopped.current);
    } finally {
      const [text, failed] = matchResult(action, last);
      notify(text, { failed });
      onDone();
      refreshLive();
    }
  };
  const stop = (): void => {
    stopped.current = true;
  };
  const close = (): void => {
    stop();
    onClose();
  };
  return (
    <FormDialog
      title={`${LABELS[action]}: all ${scope.state} tasks that match?`}
      does={`${LABELS[action]} all`}
      danger={action === 'delete'}
      ready={counted.at !== undefined && counted.matching > 0}
      onSubmit={act}
      onClose={close}
    >
      <p>
        They are in queue <b>{visible(scope.queue)}</b>: {describe(filters)}. {WARNINGS[action]}
      </p>
      {progress ? (
        <Acting of={counted.matching} progress={progress} onStop={stop} />
      ) : (
        <Counting counted={counted} total={total} />
      )}
    </FormDialog>
  );
}

/** How many tasks match, or how many so far. */
function Counting({ counted: { matching, scanned, at, error }, total }: { counted: Count; total: number | undefined }) {
  if (error !== undefined) return <p role="status">They could not be counted: {error}</p>;
  if (at !== undefined) {
    return (
      <p role="status">
        <b>{plural(matching, 'task')}</b> {matching === 1 ? 'matches' : 'match'}.
      </p>
    );
  }
  const of = Math.max(total ?? 0, scanned);
  return (
    <div class="search-state">
      <p role="status">{plural(matching, 'task')} so far …</p>
      <progress max={of || 1} value={scanned} aria-label="Counting">
        {count(scanned)}
      </progress>
    </div>
  );
}

const Acting = ({
  of,
  progress: { done, skipped },
  onStop,
}: {
  of: number;
  progress: MatchProgress;
  onStop: () => void;
}) => (
  <div class="search-state">
    <p role="status">
      {count(done)} of {plural(of, 'task')} …
    </p>
    <progress max={of} value={Math.min(of, done + skipped)} aria-label="Progress">
      {count(done)}
    </progress>
    <button type="button" class="button plain small" onClick={onStop}>
      Stop
    </button>
  </div>
);

const describe = (filters: Filters): string =>
  Object.entries(filters)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name.replace('_', ' ')} “${visible(String(value))}”`)
    .join(', ');
