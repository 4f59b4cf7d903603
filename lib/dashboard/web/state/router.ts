import { Store, useStore } from '../store.js';

/**
 * A location in the console: the decoded segments of the hash, and its query.
 * `#/queues/mail/retry?type=a`
 */
export interface Route {
  path: readonly string[];
  query: Readonly<Record<string, string>>;
}

export type RouteQuery = Readonly<Record<string, string | number | undefined>>;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function parseHash(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  return {
    path: path.split('/').filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The hash of a location; leaves out empty and undefined values. */
export function href(path: readonly string[], query: RouteQuery = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, `${value}`);
  return `#/${path.map(encodeURIComponent).join('/')}${search.size > 0 ? `?${search}` : ''}`;
}

const route = new Store<Route>(parseHash(location.hash));
window.addEventListener('hashchange', () => route.set(parseHash(location.hash)));

export const useRoute = (): Route => useStore(route);

/** Goes to a page at once: `hashchange` comes later, and what renders in between must not see the old page. */
export function navigate(path: readonly string[], query: RouteQuery = {}): void {
  const hash = href(path, query);
  location.hash = hash;
  route.set(parseHash(hash));
}

/** Changes the query of the current location without a new entry in the browser's history. */
export function replaceQuery(query: RouteQuery): void {
  const hash = href(route.get().path, query);
  if (hash === location.hash) return;
  history.replaceState(history.state, '', hash);
  route.set(parseHash(hash));
}

export const paths = {
  overview: () => href([]),
  queue: (queue: string) => href(['queues', queue]),
  list: (queue: string, state: string, query?: RouteQuery) => href(['queues', queue, state], query),
  keys: (queue: string, query?: RouteQuery) => href(['queues', queue, 'keys'], query),
  locks: (queue: string, query?: RouteQuery) => href(['queues', queue, 'locks'], query),
  task: (queue: string, id: string) => href(['queues', queue, 'tasks', id]),
  servers: () => href(['servers']),
  schedules: () => href(['schedules']),
  schedule: (entry: string) => href(['schedules', entry]),
  workflows: (query?: RouteQuery) => href(['workflows'], query),
  workflowRun: (queue: string, id: string) => href(['workflows', queue, id]),
  batches: (query?: RouteQuery) => href(['batches'], query),
  audit: (query?: RouteQuery) => href(['audit'], query),
  outbox: () => href(['outbox']),
  redis: () => href(['redis']),
  history: () => href(['history']),
  enqueue: (query?: RouteQuery) => href(['enqueue'], query),
};
