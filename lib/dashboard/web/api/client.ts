/** A request failed or was refused. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    message: string,
    /** HTTP status; 0 when there was no response. */
    readonly status: number,
    readonly code: string,
  ) {
    super(message);
  }

  /** Redis or the application does not respond. The page keeps what it shows and tries again. */
  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** One segment of a path, whatever characters the name of a queue or task has. */
export const segment = (name: string): string => encodeURIComponent(name);

/** The address of an endpoint, relative to the page, so that it works below any prefix. */
export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, `${value}`);
  return `api/${path}${search.size > 0 ? `?${search}` : ''}`;
}

async function toApiError(response: Response): Promise<ApiError> {
  const text = (await response.text().catch(() => '')).trim();
  const plain = response.headers.get('content-type')?.startsWith('text/plain') ?? false;
  const message =
    plain && text ? text.slice(0, 2000) : `The server returned ${response.status} ${response.statusText}`.trim();
  return new ApiError(message, response.status, response.headers.get('x-asynq-error') ?? '');
}

/** Browsers take a segment that is a dot or two for a step in the path, also where it is encoded. */
function refuseSteps(url: string): void {
  const step = url
    .replace(/\?.*/s, '')
    .split('/')
    .find((part) => part === '.' || part === '..');
  if (step === undefined) return;
  const message =
    `Browsers cannot ask for a task, queue or group named “${step}”: in an address this means another place. ` +
    'Select tasks in a list, or use the command line.';
  throw new ApiError(message, 400, 'UNADDRESSABLE');
}

async function send(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  refuseSteps(url);
  const init: RequestInit = { method, signal, cache: 'no-store', credentials: 'same-origin' };
  if (method !== 'GET') {
    // With one of these headers the browser asks the server first (CORS preflight), so a page of
    // another site cannot send this request.
    init.headers = { 'content-type': 'application/json', 'x-asynq-console': '1' };
    init.body = JSON.stringify(body ?? {});
  }
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('The application does not respond.', 0, 'UNREACHABLE');
  }
  if (!response.ok) throw await toApiError(response);
  return response;
}

/** The text of the response. `JSON.parse` would round large numbers. */
export async function getText(path: string, query?: Query, signal?: AbortSignal): Promise<string> {
  return (await send('GET', address(path, query), undefined, signal)).text();
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return JSON.parse(await getText(path, query, signal)) as T;
}

/** Sends a POST or DELETE; returns undefined for 204. */
export async function mutate<T = undefined>(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const response = await send(method, address(path), body);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
