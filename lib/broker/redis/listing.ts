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
import { readNanoseconds, readScore } from './scripts/arguments.js';
import { PackedReader } from './scripts/packed-reader.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

/**
 * The maximal bytes of a page: large payloads make it short, so that it does not block Redis or
 * fill the memory.
 */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

interface Entry {
  readonly id: Buffer;
  /**
   * The score; '1' for an orphaned active task; since when a pending task waits, in nanoseconds. ''
   * for none.
   */
  readonly mark: string;
  readonly message: Buffer;
  readonly result: Buffer;
}

interface RawPage {
  readonly entries: Entry[];
  readonly cursor: string | undefined;
}

/** Lists the tasks of a state or a group, page by page. */
export class RedisListing implements ListingRole {
  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

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
    const argv = [keys.taskPrefix, String(request.size), String(bytes)];
    return isUnsorted(request) ? this.listUnsorted(keys, request, argv) : this.listSorted(keys, request, argv);
  }

  private async listUnsorted(keys: QueueKeys, request: ListRequest, argv: Argument[]): Promise<RawPage> {
    const { state, cursor, offset = 0 } = request;
    requireForward(state, request.reverse);
    const position = decodeList(cursor);
    const list = state === 'pending' ? keys.pending : keys.active;
    const cutoff = state === 'pending' ? '' : String(floorSeconds(this.clock.now()));
    const further = [cutoff, String(position?.seen ?? offset), ...(position?.anchors ?? [])];
    const reply = await this.scripts.run('monitor', 'listUnsorted', [list, keys.lease], [...argv, ...further]);
    const [more, seen, packed] = reply as [number, number, Buffer];
    const entries = readEntries(packed, argv[2] === '0' ? ['id'] : ['id', 'mark', 'message', 'result']);
    const anchors = (): Buffer[] =>
      nextAnchors(
        entries.map(({ id }) => id),
        position,
      );
    return { entries, cursor: more === 1 ? encodeList({ seen, anchors: anchors() }) : undefined };
  }

  private async listSorted(keys: QueueKeys, request: ListRequest, argv: Argument[]): Promise<RawPage> {
    const position = decodeSorted(request.cursor);
    const reverse = directionOf(position, request.reverse);
    const further = [String(request.offset ?? 0), position?.score ?? '', position?.id ?? '', reverse ? '1' : ''];
    const reply = await this.scripts.run('monitor', 'listSorted', [sortedKey(keys, request)], [...argv, ...further]);
    const [more, packed] = reply as [number, Buffer];
    const entries = readEntries(packed, argv[2] === '0' ? ['id', 'mark'] : ['id', 'mark', 'message', 'result']);
    const last = entries.at(-1);
    const cursor = more === 1 && last ? encodeSorted({ score: last.mark, id: last.id, reverse }) : undefined;
    return { entries, cursor };
  }
}

const isUnsorted = ({ state }: TaskLocation): boolean => state === 'pending' || state === 'active';

/** The sorted set of a location. */
export function sortedKey(keys: QueueKeys, { state, group }: TaskLocation): string {
  if (state === 'aggregating') return keys.group(group ?? '');
  if (state === 'waiting') return keys.waitingTasks;
  return keys[state as 'scheduled' | 'retry' | 'archived' | 'completed'];
}

const NOTHING: Entry = { id: Buffer.alloc(0), mark: '', message: Buffer.alloc(0), result: Buffer.alloc(0) };

function readEntries(packed: Buffer, fields: readonly (keyof Entry)[]): Entry[] {
  const entries: Entry[] = [];
  const reader = new PackedReader(packed);
  while (reader.more()) {
    const read = fields.map((field) => [field, field === 'mark' ? reader.text() : reader.view()]);
    entries.push({ ...NOTHING, ...(Object.fromEntries(read) as Partial<Entry>) });
  }
  return entries;
}

function read(id: string, { mark, message: bytes, result }: Entry, { state }: TaskLocation): ListedTask {
  if (bytes.length === 0) throw new UndecodableMessageError(`task "${id}" is listed as ${state} but has no message`);
  const message = decodeTaskMessage(bytes);
  if (message.id !== id) {
    throw new UndecodableMessageError(`the message of task "${id}" is of a task "${message.id}"`);
  }
  const delayed = state === 'scheduled' || state === 'retry' || state === 'waiting';
  return {
    message,
    state,
    nextProcessAt: delayed ? readScore(mark) : undefined,
    pendingSince: state === 'pending' ? readNanoseconds(mark) : undefined,
    result: result.length > 0 ? result : undefined,
    orphaned: state === 'active' && mark === '1',
    archivedAt: state === 'archived' ? readScore(mark) : undefined,
  };
}
