/** The header of a task that says how often its server has died. Without it that has not happened. */
export const CRASHES_HEADER = 'asynq-crashes';

/** How the error of a task begins that is archived because of them: that of TaskCrashedError. */
export const TASK_CRASHED = 'archived as a suspect';

/** How many crashes a task remembers: the last ones. */
const MOST_KEPT = 5;

/** One time that the server of a task has died. */
export interface Crash {
  /** The last sign of life of the server, in milliseconds since the epoch. */
  readonly at: number;
  /** `<host>:<pid>` of the servers that went silent then. Empty: not known; several: one of them. */
  readonly servers: readonly string[];
  /** How many other tasks of its queue have lost their server then, at least. */
  readonly others: number;
}

export interface Crashes {
  readonly count: number;
  /** The last ones, in their order. */
  readonly last: readonly Crash[];
}

type Headers = Readonly<Record<string, string>> | undefined;

const ENTRY = /^(\d{1,16}),(\d{1,9}),(\S*)$/;

/** `undefined` without the header, and when it cannot be read. */
export function crashesOf(headers: Headers): Crashes | undefined {
  const text = headers?.[CRASHES_HEADER];
  if (text === undefined) return undefined;
  const [count = '', ...entries] = text.split(' ');
  return /^[1-9]\d{0,8}$/.test(count) ? { count: Number(count), last: entries.flatMap(readEntry) } : undefined;
}

/** The headers with one crash more. */
export function withCrash(headers: Headers, crash: Crash): { headers: Record<string, string>; crashes: Crashes } {
  const before = crashesOf(headers);
  const crashes = { count: (before?.count ?? 0) + 1, last: [...(before?.last ?? []), crash].slice(-MOST_KEPT) };
  return { headers: { ...headers, [CRASHES_HEADER]: crashesText(crashes) }, crashes };
}

const crashesText = ({ count, last }: Crashes): string => [count, ...last.map(entryText)].join(' ');

/** Names of hosts have neither spaces nor bars. */
const entryText = ({ at, others, servers }: Crash): string =>
  `${Math.floor(at)},${others},${servers.map((name) => name.replaceAll(/[\s|]/g, '_')).join('|')}`;

function readEntry(text: string): Crash[] {
  const [, at, others, servers] = ENTRY.exec(text) ?? [];
  if (servers === undefined) return [];
  return [{ at: Number(at), others: Number(others), servers: servers === '' ? [] : servers.split('|') }];
}

/** `on web-1:4242 at 2026-11-27T23:10:05.000Z, with at least 2 other tasks of its queue` */
export function crashInWords({ at, servers, others }: Crash): string {
  const where =
    servers.length === 0
      ? 'on a server that nobody knows any more'
      : `on ${servers.length > 1 ? 'one of ' : ''}${servers.join(', ')}`;
  const beside =
    others === 0
      ? 'alone in its queue'
      : `with at least ${others} other ${others === 1 ? 'task' : 'tasks'} of its queue`;
  return `${where} at ${new Date(Math.min(at, LATEST_DATE_MS)).toJSON()}, ${beside}`;
}

/** The latest time a Date can hold. */
const LATEST_DATE_MS = 8.64e15;
