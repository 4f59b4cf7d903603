import { type Clock, floorSeconds } from '../../clock.js';
import { UndecodableMessageError } from '../../errors.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import {
  decodeList,
  decodeSorted,
  directionOf,
  encodeList,
  encodeSorted,
  nextAnchors,
  requireForward,
} from '../cursor.js';
import type {
  DamagedEntry,
  IdPage,
  ListedTask,
  ListingRole,
  ListRequest,
  TaskLocation,
  TaskPage,
} from '../inspection.js';
import { onlyProgress } from '../../task/notes.js';
import { type Entry, MAX_PAGE_BYTES, type RawPage, readEntries } from './listed-entries.js';
import { type FrontPage, PendingPages } from './pending-pages.js';
import { readNanoseconds, readScore } from './scripts/arguments.js';
import { readHold } from './scripts/holds.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

/** Lists the tasks of a state or a group, page by page. */
export class RedisListing implements ListingRole {
  private readonly pending: PendingPages;

  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {
    this.pending = new PendingPages(scripts, (keys, request, bytes) => this.listUnsorted(keys, request, bytes));
  }

  async listTasks(queue: string, request: ListRequest): Promise<TaskPage> {
    const { entries, cursor } = await this.list(queue, request, MAX_PAGE_BYTES);
    const tasks: ListedTask[] = [];
    const damaged: DamagedEntry[] = [];
    for (const entry of entries) {
      const id = entry.id.toString();
      try {
        tasks.push(read(id, entry, request));
      } catch (error) {
        damaged.push({ id, error: error as Error });
      }
    }
    return { tasks, damaged, cursor };
  }

  async listIds(queue: string, request: ListRequest): Promise<IdPage> {
    const { entries, cursor } = await this.list(queue, request, 0);
    return { ids: entries.map(({ id }) => id.toString()), cursor };
  }

  private list(queue: string, request: ListRequest, bytes: number): Promise<RawPage> {
    const keys = this.keyspace.queue(queue);
    if (request.state === 'pending') return this.pending.page(keys, request, bytes);
    return request.state === 'active'
      ? this.listUnsorted(keys, request, bytes)
      : this.listSorted(keys, request, [keys.taskPrefix, String(request.size), String(bytes)]);
  }

  private async listUnsorted(keys: QueueKeys, request: ListRequest, bytes: number): Promise<FrontPage> {
    const argv = [keys.taskPrefix, String(request.size), String(bytes)];
    const { state, cursor, offset = 0 } = request;
    requireForward(state, request.reverse);
    const position = decodeList(cursor);
    const list = state === 'pending' ? keys.pending : keys.active;
    const cutoff = state === 'pending' ? '' : String(floorSeconds(this.clock.now()));
    const further = [cutoff, String(position?.seen ?? offset), ...(position?.anchors ?? [])];
    const reply = await this.scripts.run('monitor', 'listUnsorted', [list, keys.lease], [...argv, ...further]);
    const [more, seen, packed, length] = reply as [number, number, Buffer, number];
    const entries = readEntries(packed, fieldsOfList(state, bytes === 0));
    const anchors = (): Buffer[] =>
      nextAnchors(
        entries.map(({ id }) => id),
        position,
      );
    return { entries, cursor: more === 1 ? encodeList({ seen, anchors: anchors() }) : undefined, length };
  }

  private async listSorted(keys: QueueKeys, request: ListRequest, argv: Argument[]): Promise<RawPage> {
    const reverse = directionOf(decodeSorted(request.cursor), request.reverse);
    const read = [sortedKey(keys, request), keys.retry, keys.held];
    const fields = fieldsOf(request, argv[2] === '0');
    let { cursor, offset = 0 } = request;
    // A call that has only passed tasks of another state has listed none.
    for (;;) {
      const position = decodeSorted(cursor);
      const further = [String(offset), position?.score ?? '', position?.id ?? '', reverse ? '1' : ''];
      const reply = await this.scripts.run('monitor', 'listSorted', read, [...argv, ...further]);
      const [more, packed, skip, score, id] = reply as [number, Buffer, number, Buffer, Buffer];
      const entries = readEntries(packed, fields);
      cursor = more === 1 ? encodeSorted({ score: score.toString(), id, reverse }) : undefined;
      offset = skip;
      if (entries.length > 0 || cursor === undefined) return { entries, cursor };
    }
  }
}

function fieldsOfList(state: string, isIds: boolean): (keyof Entry)[] {
  if (isIds) return ['id'];
  return ['id', 'mark', 'message', 'result', ...(state === 'active' ? (['progress'] as const) : [])];
}

function fieldsOf({ state }: TaskLocation, isIds: boolean): (keyof Entry)[] {
  if (isIds) return ['id', 'mark'];
  return ['id', 'mark', 'message', 'result', ...(state === 'held' ? (['since', 'waitlist'] as const) : [])];
}

/** The sorted set of a location. */
function sortedKey(keys: QueueKeys, { state, group }: TaskLocation): string {
  if (state === 'aggregating') return keys.group(group ?? '');
  if (state === 'waiting') return keys.waitingTasks;
  return keys[state as 'scheduled' | 'retry' | 'archived' | 'completed' | 'held'];
}

function read(
  id: string,
  { mark, message: bytes, result, since, waitlist, progress }: Entry,
  { state }: TaskLocation,
): ListedTask {
  if (bytes.length === 0) throw new UndecodableMessageError(`task "${id}" is listed as ${state} but has no message`);
  const message = decodeTaskMessage(bytes);
  if (message.id !== id) {
    throw new UndecodableMessageError(`the message of task "${id}" is of a task "${message.id}"`);
  }
  const delayed = state === 'scheduled' || state === 'retry' || state === 'waiting' || state === 'held';
  return {
    message,
    state,
    nextProcessAt: delayed ? readScore(mark) : undefined,
    pendingSince: state === 'pending' ? readNanoseconds(mark) : undefined,
    held: readHold(state, since, waitlist),
    result: result.length > 0 ? result : undefined,
    orphaned: state === 'active' && mark === '1',
    archivedAt: state === 'archived' ? readScore(mark) : undefined,
    notes: progress === '' ? undefined : onlyProgress(progress),
  };
}
