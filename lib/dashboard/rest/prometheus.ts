import { ApiError } from './api-error.js';

/** Which queues, and when; seconds. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
  /** Empty: all queues; `undefined`: none. */
  readonly queues: readonly string[] | undefined;
}

const RATE = (metric: string) => (filter: string) => `rate(${metric}{${filter}}[5m])`;
const NOW = (metric: string) => (filter: string) => `${metric}{${filter}}`;
const IN_STATE = (state: string) => (filter: string) =>
  `asynq_tasks_enqueued_total{${[filter, `state="${state}"`].filter(Boolean).join(',')}}`;

const processed = RATE('asynq_tasks_processed_total');
const failed = RATE('asynq_tasks_failed_total');

/** asynqmon's names for what it asks. */
export const QUERIES: Readonly<Record<string, (filter: string) => string>> = {
  queue_size: NOW('asynq_queue_size'),
  queue_latency_seconds: NOW('asynq_queue_latency_seconds'),
  queue_memory_usage_approx_bytes: NOW('asynq_queue_memory_usage_approx_bytes'),
  tasks_processed_per_second: processed,
  tasks_failed_per_second: failed,
  error_rate: (filter) => `${failed(filter)} / ${processed(filter)}`,
  pending_tasks_by_queue: IN_STATE('pending'),
  retry_tasks_by_queue: IN_STATE('retry'),
  archived_tasks_by_queue: IN_STATE('archived'),
};

/** The names as one regular expression inside one quoted text: nothing in a name ends either. */
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

const TIMEOUT = 10_000;

/** All queries at once; the values are what Prometheus answered. @throws ApiError when it does not, or not with JSON */
export async function askPrometheus(address: string, range: Range): Promise<Record<string, unknown>> {
  const filter = filterOf(range.queues);
  const answers = Object.entries(QUERIES).map(async ([name, query]) => [
    name,
    await ask(address, query(filter), range),
  ]);
  return Object.fromEntries(await Promise.all(answers)) as Record<string, unknown>;
}

async function ask(address: string, query: string, { start, end, step }: Range): Promise<unknown> {
  const url = new URL(`${address}/api/v1/query_range`);
  const headers = credentialsOf(url);
  const parameters = { query, start, end, step };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, String(value));
  try {
    const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT) });
    return await answer.json();
  } catch (error) {
    const reason = error instanceof Error ? error.name : 'error';
    throw new ApiError('UPSTREAM', `Prometheus at ${url.origin} did not answer (${reason}); see the option prometheus`);
  }
}

/** `fetch` takes no address with credentials in it. */
function credentialsOf(url: URL): Record<string, string> {
  if (url.username === '') return {};
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}
