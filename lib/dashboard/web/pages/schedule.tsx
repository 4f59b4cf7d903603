import { useMemo, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { EntryWithPayload } from '../api/fleet-types.js';
import { nodeAt, parseJson } from '../json/parse.js';
import { When } from '../live/time.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { Content } from '../ui/content.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';
import { NextTime, PauseEntry, RunEntry } from './schedules.js';

const FIRST_EVENTS = 50;

/** The times it was enqueued, newest first, as far as Redis keeps them. */
function History({ entry, round }: { entry: string; round: number }) {
  const [size, setSize] = useState(FIRST_EVENTS);
  const { data, error, reload } = useResource(
    `events ${entry} ${size} ${round}`,
    (signal) => api.events(entry, { size, page: 1 }, signal),
    { every: useRefreshInterval(2.5), keep: true },
  );
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={3} />;
  const events = data.events ?? [];
  if (events.length === 0) return <p class="faint">It has not been enqueued yet, or its history has expired.</p>;
  return (
    <>
      <ol class="timeline">
        {events.map(({ task_id, enqueued_at }) => (
          <li key={`${enqueued_at} ${task_id}`}>
            <Text value={task_id} class="mono wrap" />
            <When at={enqueued_at} />
          </li>
        ))}
      </ol>
      {events.length === size && size < 200 && (
        <button type="button" class="button plain small" onClick={() => setSize(200)}>
          More
        </button>
      )}
    </>
  );
}

function Details({ entry }: { entry: EntryWithPayload }) {
  return (
    <section class="card" aria-label="Schedule">
      <dl class="pairs">
        <div>
          <dt>spec</dt>
          <dd class="mono wrap">
            <Text value={entry.spec} />
          </dd>
        </div>
        <div>
          <dt>queue</dt>
          <dd>
            <a href={paths.queue(entry.queue)}>
              <Text value={entry.queue} class="wrap" />
            </a>
          </dd>
        </div>
        <div>
          <dt>next</dt>
          <dd>
            <NextTime entry={entry} long />
          </dd>
        </div>
        <div>
          <dt>previous</dt>
          <dd>
            <When at={entry.prev_enqueue_at} none="never" />
          </dd>
        </div>
        <div>
          <dt>options</dt>
          <dd>
            <Text value={entry.options.join(', ') || 'none'} class="wrap" />
          </dd>
        </div>
      </dl>
    </section>
  );
}

const Payload = ({ entry, text }: { entry: EntryWithPayload; text: string | undefined }) => (
  <Content
    title="Payload"
    size={entry.payload_size}
    base64={entry.payload_base64}
    text={entry.task_payload}
    redacted={entry.payload_redacted}
    tooLarge={entry.payload_too_large}
    decoded={decodedOf(entry, text)}
    download={entry.payload_redacted || entry.payload_size === 0 ? undefined : api.downloadEntry(entry.id)}
  />
);

export function SchedulePage({ id }: { id: string }) {
  const may = useMay();
  const [round, setRound] = useState(0);
  const { data, error, reload } = useResource(`entry ${id}`, (signal) => api.entry(id, signal), {
    every: useRefreshInterval(2.5),
  });
  const entry = useMemo(() => (data === undefined ? undefined : (JSON.parse(data) as EntryWithPayload)), [data]);
  const gone = error?.status === 404;
  const above = <a href={paths.schedules()}>Schedules</a>;
  return (
    <Page
      title={entry?.task_type ?? id}
      above={above}
      heading={<Text value={entry?.task_type ?? id} />}
      actions={
        entry &&
        !gone &&
        may('act', entry.queue) && (
          <>
            <RunEntry entry={entry} onDone={() => setRound(round + 1)} />
            <PauseEntry entry={entry} onDone={reload} />
          </>
        )
      }
    >
      {!data && !gone && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {gone && (
        <Empty title="This schedule is not running">Its process has stopped, or has restarted with another id.</Empty>
      )}
      <div class="task-grid">
        <div class="stack">
          {entry && !entry.can_pause && (
            <p class="faint">
              A scheduler of Go's asynq has this entry. It knows no pause: stop it, or remove the entry there.
            </p>
          )}
          {entry && <Payload entry={entry} text={data} />}
          <section class="card" aria-label="History">
            <header>
              <h2>History</h2>
            </header>
            <div>
              <History entry={id} round={round} />
            </div>
          </section>
        </div>
        <div class="stack">{entry && <Details entry={entry} />}</div>
      </div>
    </Page>
  );
}

function decodedOf({ payload_decoded: decoded }: EntryWithPayload, text: string | undefined) {
  const node = decoded && nodeAt(parseJson(text ?? ''), 'payload_decoded', 'value');
  return node ? { decoder: decoded.decoder, node } : undefined;
}
