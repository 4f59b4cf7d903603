import { ApiError } from './api-error.js';

/** Queues and range of a query; times in seconds. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
  /** Empty: all queues; `undefined`: none. */
  readonly queues: readonly string[] | undefined;
}

type Query = (filter: string, step: number) => string;

/** Five minutes, as in asynqmon, or the step if that is longer, so that no sample is skipped. */
const windowOf = (step: number): string => (step > 300 ? `${step}s` : '5m');

const RATE =
  (metric: string): Query =>
  (filter, step) =>
    `rate(${metric}{${filter}}[${windowOf(step)}])`;
const NOW =
  (metric: string): Query =>
  (filter) =>
    `${metric}{${filter}}`;
const IN_STATE =
  (state: string): Query =>
  (filter) =>
    `asynq_tasks_enqueued_total{${[filter, `state="${state}"`].filter(Boolean).join(',')}}`;

const processed = RATE('asynq_tasks_processed_total');
const failed = RATE('asynq_tasks_failed_total');

/** asynqmon's names of its queries. */
export const QUERIES: Readonly<Record<string, Query>> = {
  queue_size: NOW('asynq_queue_size'),
  queue_latency_seconds: NOW('asynq_queue_latency_seconds'),
  queue_memory_usage_approx_bytes: NOW('asynq_queue_memory_usage_approx_bytes'),
  tasks_processed_per_second: processed,
  tasks_failed_per_second: failed,
  error_rate: (filter, step) => `${failed(filter, step)} / ${processed(filter, step)}`,
  pending_tasks_by_queue: IN_STATE('pending'),
  retry_tasks_by_queue: IN_STATE('retry'),
  archived_tasks_by_queue: IN_STATE('archived'),
};

/**
 * The names as one quoted regular expression. Names are escaped, so they cannot change the query.
 */
export function filterOf(queues: readonly string[] | undefined): string {
  if (queues === undefined) return 'queue="",queue!=""';
  if (queues.length === 0) return '';
  const names = queues.map((queue) => queue.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return `queue=~${JSON.stringify(names.join('|'))}`;
}

const STEPS: readonly (readonly [upTo: number, step: number])[] = [
  [6 * 3600, 10],
  [24 * 3600, 60],
  [8 * 86_400, 180],
  [30 * 86_400, 600],
];

/** @param duration seconds */
export const stepOf = (duration: number): number =>
  STEPS.find(([upTo]) => duration <= upTo)?.[1] ?? Math.floor(duration / 3000);

const TIMEOUT_MS = 10_000;

/**
 * Sends all queries at once and returns Prometheus' responses.
 *
 * @throws ApiError when it does not respond, or not with JSON
 */
export async function askPrometheus(address: string, range: Range): Promise<Record<string, unknown>> {
  const filter = filterOf(range.queues);
  const results = Object.entries(QUERIES).map(async ([name, query]) => [
    name,
    await ask(address, query(filter, range.step), range),
  ]);
  return Object.fromEntries(await Promise.all(results)) as Record<string, unknown>;
}

async function ask(address: string, query: string, { start, end, step }: Range): Promise<unknown> {
  const url = new URL(`${address}/api/v1/query_range`);
  const headers = credentialsOf(url);
  const parameters = { query, start, end, step };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, String(value));
  const upstream = (what: string): ApiError =>
    new ApiError('UPSTREAM', `Prometheus at ${url.origin} ${what}; see the option prometheus`);
  let status = '';
  try {
    const response = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    status = `${response.status} ${response.statusText}`.trim();
    // Prometheus' refusals (400, 422, 503) are JSON, too, and are passed on.
    return await response.json();
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError')
      throw upstream(`did not respond within ${TIMEOUT_MS / 1000} s`);
    if (status !== '') throw upstream(`responded with ${status} and no JSON`);
    throw upstream(`did not respond (${reasonOf(error)})`);
  }
}

/** The network error's code (`ECONNREFUSED`), which fetch has in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'error';
  const { code, message } = (error.cause ?? {}) as { code?: unknown; message?: unknown };
  return String(code ?? message ?? error.name);
}

/** `fetch` takes no credentials in an address. */
function credentialsOf(url: URL): Record<string, string> {
  if (url.username === '') return {};
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}
