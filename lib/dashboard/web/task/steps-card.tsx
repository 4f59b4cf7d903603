import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Step, Steps } from '../api/step-types.js';
import type { Task } from '../api/task-types.js';
import { When } from '../live/time.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { bytes, count, duration, instant, plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { LongText, Text } from '../ui/text.js';
import { SendSignal } from './send-signal.js';

const SIZE = 100;
/** Most tasks have no steps: whether one has any by now is asked less often. */
const SLOWER = 8;

const COLORS: Readonly<Record<Step['state'], string>> = {
  done: 'completed',
  failed: 'archived',
  running: 'active',
  retrying: 'retry',
  asleep: 'scheduled',
  waiting: 'waiting',
  undone: 'aggregating',
};

/** `run, 3 s`, `wait for “approval”` */
function about({ kind, signal, tries, done, started_at, ended_at }: Step): string {
  const [start, end] = [instant(started_at), instant(ended_at)];
  return [
    signal === null ? kind : `wait for “${visible(signal)}”`,
    start === undefined || end === undefined ? '' : duration(Math.max(0, end - start) / 1000),
    tries > 0 ? `${plural(tries, 'try', 'tries')} failed` : '',
    done === null ? '' : `${count(done)} done`,
  ]
    .filter(Boolean)
    .join(', ');
}

const UNTIL: Readonly<Partial<Record<Step['state'], string>>> = {
  asleep: 'until',
  waiting: 'until',
  retrying: 'next try',
};

const Time = ({ step }: { step: Step }) => (
  <p class="faint">
    {step.wake_at === null ? '' : `${UNTIL[step.state] ?? 'until'} `}
    <When at={step.wake_at ?? step.ended_at ?? step.started_at} />
  </p>
);

const Child = ({ child }: { child: NonNullable<Step['child']> }) => (
  <p>
    task{' '}
    <a href={paths.task(child.queue, child.id)}>
      <Text value={child.id} class="mono wrap" />
    </a>
  </p>
);

function Result({ step }: { step: Step }) {
  if (step.result_size === 0) return null;
  if (step.result === null && !step.result_redacted && step.result_size > 'null'.length) {
    return <p class="faint">result of {bytes(step.result_size)}, too large to be shown here</p>;
  }
  return (
    <details>
      <summary>
        result<span class="sr-only"> of {visible(step.name)}</span>
        {step.result_redacted && <span class="flag">redacted</span>}
      </summary>
      <pre class="raw">
        <LongText value={JSON.stringify(step.result, null, 2)} lines />
      </pre>
    </details>
  );
}

function Row({ step, onSignal }: { step: Step; onSignal: ((name: string) => void) | undefined }) {
  const { name, state, signal, child, error } = step;
  return (
    <li class={`color-${COLORS[state]}`}>
      <div class="step-line">
        <b>
          <Text value={name} class="wrap" />
        </b>
        <span class={`chip color-${COLORS[state]}`}>{state}</span>
        <span class="faint wrap">{about(step)}</span>
        {state === 'waiting' && signal !== null && onSignal && (
          <Button small onClick={() => onSignal(signal)} label={`Send the signal: ${visible(signal)}`}>
            Send the signal
          </Button>
        )}
      </div>
      <Time step={step} />
      {child && <Child child={child} />}
      {error !== '' && (
        <p class="problem-text">
          <LongText value={error} />
        </p>
      )}
      <Result step={step} />
    </li>
  );
}

const Signals = ({ signals }: Pick<Steps, 'signals'>) => (
  <p class="faint wrap">
    Signals: {signals.map(({ name, count, taken }) => `“${visible(name)}” ${count} came, ${taken} taken`).join('; ')}
  </p>
);

function Pages({ total, page, onPage }: { total: number; page: number; onPage: (page: number) => void }) {
  const last = Math.ceil(total / SIZE);
  if (last <= 1) return null;
  return (
    <nav class="pages" aria-label="Pages of steps">
      <Button small disabled={page <= 1} onClick={() => onPage(page - 1)}>
        Earlier steps
      </Button>
      <span class="faint">
        {count((page - 1) * SIZE + 1)} to {count(Math.min(page * SIZE, total))} of {count(total)}
      </span>
      <Button small disabled={page >= last} onClick={() => onPage(page + 1)}>
        Later steps
      </Button>
    </nav>
  );
}

interface StepsCardProps extends Pick<Task, 'queue' | 'id' | 'state'> {
  /** Called when a signal is sent. */
  onDone: () => void;
}

/** The steps of the handler of a task, if it has any. */
export function StepsCard({ queue, id, state, onDone }: StepsCardProps) {
  const may = useMay();
  const [page, setPage] = useState(1);
  const [signal, setSignal] = useState<string>();
  const [known, setKnown] = useState(false);
  const isOver = state === 'completed' || state === 'archived';
  const interval = useRefreshInterval(known ? 1.5 : SLOWER);
  const key = JSON.stringify([queue, id, state, page]);
  const read = async (aborted: AbortSignal): Promise<Steps> => {
    const steps = await api.steps(queue, id, { page, size: SIZE }, aborted);
    setKnown(steps.total > 0 || steps.signals.length > 0);
    return steps;
  };
  const { data, reload } = useResource(key, read, { every: isOver ? 0 : interval, keep: true });
  if (!data || (data.total === 0 && data.signals.length === 0)) return null;
  const done = (): void => {
    reload();
    onDone();
  };
  return (
    <section class="card" aria-label="Steps">
      <header>
        <h2>Steps</h2>
        <span class="faint">{count(data.total)}</span>
      </header>
      {data.undoing && (
        <p class="notice-line">
          {data.undoing.over ? 'They are undone' : 'They are being undone'}
          {data.undoing.error === '' ? '.' : ': '}
          <LongText value={data.undoing.error} />
        </p>
      )}
      <ol class="steps-line">
        {data.steps.map((step) => (
          <Row key={step.name} step={step} onSignal={!isOver && may('act', queue) ? setSignal : undefined} />
        ))}
      </ol>
      <Pages total={data.total} page={page} onPage={setPage} />
      {data.signals.length > 0 && <Signals signals={data.signals} />}
      {signal !== undefined && (
        <SendSignal queue={queue} id={id} name={signal} onDone={done} onClose={() => setSignal(undefined)} />
      )}
    </section>
  );
}
