import { ApiError } from '../api/client.js';
import { api } from '../api/endpoints.js';
import type { Live, QueueRow, Sample } from '../api/types.js';
import { repeat } from '../state/resource.js';
import { Store } from '../store.js';
import { messageOf } from '../text/errors.js';

export interface Moment {
  /** Milliseconds since 1970, by the server's clock. */
  t: number;
  queues: Sample['queues'];
}

export interface LiveState {
  /**
   * `connecting` before the first reply; `away` while Redis or the application does not respond.
   */
  status: 'connecting' | 'live' | 'away' | 'refused';
  error: string;
  /** Undefined before the first reply: unknown is not the same as none. */
  queues: readonly QueueRow[] | undefined;
  /** Oldest first. */
  moments: readonly Moment[];
  /** When the last reply came, by the browser's clock. */
  answeredAt: number | undefined;
  /** How far the server's clock is ahead of the browser's. */
  aheadMs: number;
}

/** The server keeps a few less. */
const MAX_MOMENTS = 900;
/** Older moments are not shown. */
const WINDOW_MS = 15 * 60_000;

export const live = new Store<LiveState>({
  status: 'connecting',
  error: '',
  queues: undefined,
  moments: [],
  answeredAt: undefined,
  aheadMs: 0,
});

let sequence: number | undefined;

const moment = (sample: Sample): Moment => ({
  t: typeof sample.t === 'number' ? sample.t : Date.parse(sample.t),
  queues: sample.queues,
});

function applyReply(state: LiveState, reply: Live): LiveState {
  const restarted = sequence !== undefined && reply.sequence < sequence;
  sequence = reply.sequence;
  const now = Date.parse(reply.now);
  const known = restarted ? [] : state.moments;
  const last = known.at(-1)?.t ?? 0;
  const moments = [...known, ...reply.samples.map(moment).filter(({ t }) => t > last)]
    .filter(({ t }) => t > now - WINDOW_MS)
    .slice(-MAX_MOMENTS);
  return {
    status: 'live',
    error: '',
    queues: reply.queues,
    moments,
    answeredAt: Date.now(),
    aheadMs: now - Date.now(),
  };
}

/** After this time without a reply the page says that it is out of date. */
const LATE_AFTER_MS = 5000;

const markLate = (): void =>
  live.update((state) => ({ ...state, status: 'away', error: 'Redis or the application is slow to respond.' }));

async function refresh(): Promise<void> {
  const late = window.setTimeout(markLate, LATE_AFTER_MS);
  try {
    const reply = await api.live(sequence);
    live.update((state) => applyReply(state, reply));
  } catch (error) {
    const away = !(error instanceof ApiError) || error.isAway;
    live.update((state) => ({ ...state, status: away ? 'away' : 'refused', error: messageOf(error) }));
  } finally {
    window.clearTimeout(late);
  }
}

/** Polls while the tab is visible. @param interval milliseconds */
export const follow = (interval: number): (() => void) => repeat(refresh, interval);

/** Polls at once, after an action that changes the numbers. */
export const refreshLive = (): void => void refresh();

/** The server's current time, estimated: for countdowns and ages. */
export const serverNow = (): number => Date.now() + live.get().aheadMs;
