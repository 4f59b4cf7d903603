import type { Broker } from '../broker/broker.js';
import { decodeSorted, encodeSorted } from '../broker/cursor.js';
import type { StoredKey } from '../broker/fair-keys.js';
import { MAX_PAGE_SIZE } from '../broker/inspection.js';
import { toDate } from '../clock.js';
import { InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../validation.js';
import { fairnessOf, type FairShare } from '../wire/fairness.js';
import { requireQueue } from './known-queue.js';

/** Which limit of a key is reached. */
export type KeyLimit = 'concurrency' | 'rate';

/** A key of a fair queue, as it is now. */
export interface FairKeyInfo {
  /** '' is the key of tasks without one. */
  readonly key: string;
  /** Its tasks that wait for their turn. */
  readonly waiting: number;
  /**
   * Its tasks that run. With a concurrency, those that have a slot: also tasks that wait for a Go server after their turn. `undefined` when
   * it has no concurrency and more tasks of the queue are active than one call reads (1,000, or 4 MB).
   */
  readonly running: number | undefined;
  /** Turns for each of a key of weight 1. Like the limits, as the last task says that was enqueued; they are known while tasks wait. */
  readonly weight: number;
  /** Tasks of it that may run at a time; `undefined`: no limit. */
  readonly concurrency: number | undefined;
  /** How many may start per time; `undefined`: no limit. `per` in milliseconds. */
  readonly rate: { readonly max: number; readonly per: number } | undefined;
  /** What holds it back; `undefined` when it has its turns. */
  readonly held: KeyHold | undefined;
}

export interface KeyHold {
  /** Its limits that are reached; empty when there is room again, and it is looked at in a moment. */
  readonly by: readonly KeyLimit[];
  /** When its rate lets a task start, or when it is looked at again at the latest: a slot may be free before. */
  readonly until: Date;
}

export interface FairKeyListOptions {
  /** The most keys to return, 1 to 1000; default 30. */
  readonly size?: number;
  /** The `cursor` of the page before. */
  readonly cursor?: string;
  /** Only keys that have this text in them. */
  readonly search?: string;
  /** Only keys that a limit of their own holds back. Default false. */
  readonly held?: boolean;
  /** Most waiting tasks first, or by name (as JavaScript compares texts). Default `waiting`. */
  readonly sort?: 'waiting' | 'name';
}

/** A page of keys. */
export interface FairKeyList {
  readonly keys: readonly FairKeyInfo[];
  /** Continues the list; `undefined` after the last page. */
  readonly cursor: string | undefined;
}

type KeysBroker = Pick<Broker, 'fairKeys' | 'inspection' | 'listing' | 'clock'>;

const KNOWN: readonly (keyof FairKeyListOptions)[] = ['size', 'cursor', 'search', 'held', 'sort'];
const DEFAULT_PAGE_SIZE = 30;

interface Sized {
  readonly key: string;
  readonly waiting: number;
}

interface Listing {
  readonly size: number;
  readonly after: Sized | undefined;
  readonly search: string;
  readonly held: boolean;
  readonly compare: (one: Sized, other: Sized) => number;
}

/** @throws InvalidOptionError; QueueNotFoundError */
export async function listFairKeys(
  broker: KeysBroker,
  queue: string,
  options: FairKeyListOptions = {},
): Promise<FairKeyList> {
  const { size, after, search, held, compare } = toListing(options);
  await requireQueue(broker.inspection, queue);
  const [sizes, active] = await Promise.all([
    broker.fairKeys.sizes(queue, held, compare === byWaiting),
    activeByKey(broker, queue),
  ]);
  const some = new FirstOf(size + 1, compare);
  const add = (one: Sized): void => {
    if (one.key.includes(search) && (!after || compare(one, after) > 0)) some.add(one);
  };
  for (const [key, waiting] of sizes) add({ key, waiting });
  for (const key of held ? [] : (active?.keys() ?? [])) if (key !== '' && !sizes.has(key)) add({ key, waiting: 0 });
  const page = some.found.slice(0, size);
  const stored = await broker.fairKeys.describe(
    queue,
    page.map(({ key }) => key),
  );
  const keys = stored.map((one) => viewKey(one, active, broker.clock.now()));
  const last = page.at(-1);
  return {
    // What has ended meanwhile is left out, and tasks without a key that only run.
    keys: keys.filter((one) => (held ? one.held : one.waiting > 0 || (one.running !== 0 && one.key !== ''))),
    cursor: some.found.length > size && last ? encode(last, options.sort ?? 'waiting') : undefined,
  };
}

/** @throws InvalidOptionError */
function toListing(options: FairKeyListOptions): Listing {
  requireObject(options, 'the options of a list of keys', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, 'option of a list of keys:', InvalidOptionError);
  const { size = DEFAULT_PAGE_SIZE, cursor, search, held = false, sort = 'waiting' } = options;
  requireInteger(size, 'size', InvalidOptionError, { least: 1, most: MAX_PAGE_SIZE });
  if (sort !== 'waiting' && sort !== 'name') {
    throw new InvalidOptionError(`sort must be "waiting" or "name", not ${describe(sort)}`);
  }
  if (typeof held !== 'boolean') throw new InvalidOptionError(`held must be true or false, not ${describe(held)}`);
  if (search !== undefined) requireNonBlank(search, 'search', InvalidOptionError);
  if (cursor !== undefined) requireNonBlank(cursor, 'cursor', InvalidOptionError);
  const compare = sort === 'name' ? byName : byWaiting;
  return { size, after: decode(cursor, sort), search: search ?? '', held, compare };
}

const byName = (one: Sized, other: Sized): number => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);
const byWaiting = (one: Sized, other: Sized): number => other.waiting - one.waiting || byName(one, other);

/** That of a sorted list: its score is the number of tasks, and backwards are lists with the most first. */
const encode = ({ key, waiting }: Sized, sort: string): string =>
  encodeSorted({ score: String(waiting), id: Buffer.from(key), reverse: sort === 'waiting' });

function decode(cursor: string | undefined, sort: string): Sized | undefined {
  const position = decodeSorted(cursor);
  if (!position) return undefined;
  if (position.reverse !== (sort === 'waiting')) {
    throw new InvalidOptionError('this cursor is of a list in another order; give the same sort, or leave it out');
  }
  return { key: position.id.toString(), waiting: Number(position.score) };
}

/** The first of many, in order, without sorting all. */
class FirstOf {
  readonly found: Sized[] = [];

  constructor(
    private readonly most: number,
    private readonly compare: (one: Sized, other: Sized) => number,
  ) {}

  add(one: Sized): void {
    const { found, most, compare } = this;
    if (found.length === most && compare(one, found[most - 1]!) >= 0) return;
    let low = 0;
    for (let high = found.length; low < high;) {
      const middle = (low + high) >> 1;
      if (compare(one, found[middle]!) < 0) high = middle;
      else low = middle + 1;
    }
    found.splice(low, 0, one);
    if (found.length > most) found.pop();
  }
}

/** What runs of a key, and the share of one of these tasks; `undefined` for tasks without a key. */
interface ActiveKey {
  number: number;
  readonly share: FairShare | undefined;
}

/** What runs, by key; `undefined` when it is more than one call reads. */
async function activeByKey({ listing }: KeysBroker, queue: string): Promise<Map<string, ActiveKey> | undefined> {
  const { tasks, cursor } = await listing.listTasks(queue, { state: 'active', size: MAX_PAGE_SIZE });
  if (cursor !== undefined) return undefined;
  const active = new Map<string, ActiveKey>();
  for (const { message } of tasks) {
    const share = fairnessOf(message.headers);
    const known = active.get(share?.key ?? '');
    if (known) known.number++;
    else active.set(share?.key ?? '', { number: 1, share });
  }
  return active;
}

function viewKey(stored: StoredKey, active: Map<string, ActiveKey> | undefined, now: number): FairKeyInfo {
  const { key, waiting, taken } = stored;
  const running = active?.get(key);
  const share = waiting > 0 ? stored.share : (running?.share ?? stored.share);
  return {
    key,
    waiting,
    running: taken > 0 ? taken : active && (running?.number ?? 0),
    weight: share.weight,
    concurrency: share.concurrency || undefined,
    rate: share.rate > 0 ? { max: share.rate, per: share.window } : undefined,
    held: holdOf(stored, now),
  };
}

/** What holds a key back; `undefined` when it has its turns. */
export function holdOf(stored: StoredKey, now: number): KeyHold | undefined {
  const { lookAt, startsIn } = stored;
  if (lookAt === undefined) return undefined;
  return { by: reachedLimits(stored), until: toDate(startsIn > 0 ? now + startsIn : lookAt) };
}

export const reachedLimits = ({ share: { concurrency }, taken, startsIn }: StoredKey): KeyLimit[] => [
  ...(concurrency > 0 && taken >= concurrency ? (['concurrency'] as const) : []),
  ...(startsIn > 0 ? (['rate'] as const) : []),
];
