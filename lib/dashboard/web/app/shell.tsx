import type { ComponentChildren } from 'preact';
import { isUnreadable } from '../api/types.js';
import { useNow } from '../live/clock.js';
import { live } from '../live/live.js';
import { config, useHasOutbox, useMay, useMaySeeRedis } from '../state/config.js';
import { paths, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { clockDuration, compact } from '../text/format.js';
import { Text } from '../ui/text.js';
import { helpOpen, keyOf } from './keys.js';
import { nextTheme, theme } from './theme.js';

interface NavItem {
  name: string;
  href: string;
  /** First segments of the routes that belong to this item. */
  segments: readonly (string | undefined)[];
}

const NAV: readonly NavItem[] = [
  { name: 'Overview', href: paths.overview(), segments: [undefined] },
  { name: 'Servers', href: paths.servers(), segments: ['servers'] },
  { name: 'Schedules', href: paths.schedules(), segments: ['schedules'] },
  { name: 'Workflows', href: paths.workflows(), segments: ['workflows'] },
  { name: 'Batches', href: paths.batches(), segments: ['batches'] },
];

const AUDIT: NavItem = { name: 'Audit', href: paths.audit(), segments: ['audit'] };
const OUTBOX: NavItem = { name: 'Outbox', href: paths.outbox(), segments: ['outbox'] };
const REDIS: NavItem = { name: 'Redis', href: paths.redis(), segments: ['redis'] };
const HISTORY: NavItem = { name: 'History', href: paths.history(), segments: ['history'] };
const ENQUEUE: NavItem = { name: 'Enqueue', href: paths.enqueue(), segments: ['enqueue'] };

function Navigation() {
  const route = useRoute();
  const may = useMay();
  const seesRedis = useMaySeeRedis();
  const hasOutbox = useHasOutbox();
  const hasHistory = useStore(config, (current) => current?.prometheus ?? false);
  const items = [
    ...NAV,
    ...(hasOutbox ? [OUTBOX] : []),
    ...(seesRedis ? [REDIS] : []),
    ...(hasHistory ? [HISTORY] : []),
    AUDIT,
    ...(may('act') ? [ENQUEUE] : []),
  ];
  return (
    <nav class="nav" aria-label="Console">
      {items.map(({ name, href, segments }) => (
        <a
          key={name}
          href={href}
          title={`Keys: g ${keyOf(href)}`}
          aria-current={segments.includes(route.path[0]) ? 'page' : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}

/** The rest is found with the filter of the overview. */
const MAX_QUEUES = 100;

function Queues() {
  const queues = useStore(live, ({ queues }) => queues);
  const route = useRoute();
  if (queues === undefined || queues.length === 0) return null;
  return (
    <nav class="rail-queues" aria-labelledby="rail-queues">
      <h2 id="rail-queues">Queues</h2>
      <ul>
        {queues.slice(0, MAX_QUEUES).map((row) => {
          const here = route.path[0] === 'queues' && route.path[1] === row.queue;
          return (
            <li key={row.queue}>
              <a href={paths.queue(row.queue)} aria-current={here ? 'true' : undefined}>
                <Text value={row.queue} titled class="cut" />
                {isUnreadable(row) ? (
                  <span class="flag bad">error</span>
                ) : (
                  <>
                    {row.paused && <span class="flag">paused</span>}
                    <span class="number">{compact(row.pending)}</span>
                  </>
                )}
              </a>
            </li>
          );
        })}
      </ul>
      {queues.length > MAX_QUEUES && <p class="faint">and {queues.length - MAX_QUEUES} more</p>}
    </nav>
  );
}

const STATUS = { connecting: 'connecting', live: 'live', away: 'no response', refused: 'refused' } as const;

function Foot() {
  const status = useStore(live, ({ status }) => status);
  const mode = useStore(theme);
  const current = useStore(config);
  const may = useMay();
  return (
    <div class="rail-foot">
      <p class={`status ${status}`}>{STATUS[status]}</p>
      {current && (
        <p class="faint connection">
          <Text value={current.connection} titled class="cut" />
          {current.read_only && <span class="flag">read-only</span>}
          {!current.read_only && !may('act') && <span class="flag">view only</span>}
        </p>
      )}
      <div class="rail-buttons">
        <button type="button" class="quiet" onClick={nextTheme} aria-label={`Theme: ${mode}. Change it`}>
          {{ auto: '◐ auto', light: '○ light', dark: '● dark' }[mode]}
        </button>
        <button type="button" class="quiet" onClick={() => helpOpen.set(true)}>
          ? keys
        </button>
      </div>
    </div>
  );
}

function Age({ since }: { since: number }) {
  useNow();
  return <>{clockDuration((Date.now() - since) / 1000)}</>;
}

/** Shows that the page is out of date, and since when. */
function Banner() {
  const { status, error, answeredAt } = useStore(live);
  if (status !== 'away' && status !== 'refused') return null;
  return (
    <div class="banner" role="alert">
      <p>
        <b>
          <Text value={error} />
        </b>{' '}
        {answeredAt !== undefined && (
          <>
            This was read <Age since={answeredAt} /> ago. Trying again.
          </>
        )}
      </p>
    </div>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const title = useStore(config, (current) => current?.title) ?? 'asynq';
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="rail">
        <a class="brand" href={paths.overview()}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M8 10h10M8 16h16M8 22h7" />
            <circle cx="23" cy="10" r="2.6" />
          </svg>
          <Text value={title} class="cut" />
        </a>
        <Navigation />
        <Queues />
        <Foot />
      </header>
      <main id="main" tabIndex={-1}>
        <Banner />
        {children}
      </main>
    </div>
  );
}

/** The hash is the route, so the link must not change it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
