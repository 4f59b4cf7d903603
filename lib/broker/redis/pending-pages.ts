import { decodeTaskMessage } from '../../wire/codec.js';
import { fairnessOf } from '../../wire/fairness.js';
import type { QueueKeys } from '../../wire/keys.js';
import { decodeLine, encodeLine, firstLine, type LinePosition } from '../line-cursor.js';
import type { ListRequest } from '../inspection.js';
import { type Entry, MAX_PAGE_BYTES, type RawPage, readEntries } from './listed-entries.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Scripts } from './scripts/scripts.js';

/** A page of the list `pending`, and how long that is. */
export type FrontPage = RawPage & { readonly length: number };

/** Steps of one page through lines: each ends after some hundred keys, of which few are empty. */
const MOST_STEPS = 20;

/** The pending tasks of a queue: those in the list `pending`, then those in the lines of a fair queue. */
export class PendingPages {
  /** @param front a page of the list `pending` */
  constructor(
    private readonly scripts: Scripts,
    private readonly front: (keys: QueueKeys, request: ListRequest, bytes: number) => Promise<FrontPage>,
  ) {}

  /** @param bytes of messages and results, about; 0 reads ids only */
  async page(keys: QueueKeys, request: ListRequest, bytes: number): Promise<RawPage> {
    const { cursor, offset = 0, fairnessKey } = request;
    const position = decodeLine(cursor, fairnessKey);
    if (position) return this.lines(keys, request, position, { bytes, skip: 0, before: [] });
    const page = await this.front(keys, request, fairnessKey === undefined ? bytes : MAX_PAGE_BYTES);
    const before = fairnessKey === undefined ? page.entries : page.entries.filter(hasKey(fairnessKey));
    if (page.cursor !== undefined) return { entries: before, cursor: page.cursor };
    const skip = cursor === undefined ? Math.max(0, offset - page.length) : 0;
    return this.lines(keys, request, firstLine(fairnessKey), { bytes, skip, before });
  }

  private async lines(
    keys: QueueKeys,
    { size }: ListRequest,
    begin: LinePosition,
    { bytes, skip, before }: { bytes: number; skip: number; before: readonly Entry[] },
  ): Promise<RawPage> {
    const entries = [...before];
    let [position, skipped, more] = [begin, skip, true];
    for (let step = 0; more && (step < MOST_STEPS || skipped > 0); step++) {
      const left = bytes - weightOf(entries);
      const wanted = bytes > 0 && left <= 0 ? 0 : size - entries.length;
      const { source, scan, ends, done, key, score } = position;
      const bounds = [String(wanted), String(Math.max(0, left)), String(skipped)];
      const argv = [keys.taskPrefix, keys.fairLinePrefix, ...bounds, source, scan, ends, done, key, score];
      const reply = await this.scripts.run('monitor', 'listLines', queueKeys('listLines', keys), argv);
      const [follow, rest, ...next] = reply as [number, number, ...Buffer[]];
      const packed = next.pop()!;
      entries.push(...readEntries(packed, bytes === 0 ? ['id'] : ['id', 'mark', 'message', 'result']));
      [more, skipped, position] = [follow === 1, rest, positionOf(next.map(String))];
      if (wanted === 0 || entries.length >= size) break;
    }
    return { entries, cursor: more ? encodeLine(position) : undefined };
  }
}

function positionOf(texts: readonly string[]): LinePosition {
  const [source, scan, ends, done, key, score] = texts as [string, string, string, string, string, string];
  return { source, scan, ends, done, key, score };
}

const weightOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { message, result }) => sum + message.length + result.length, 0);

/** Whether a task is of the key; a damaged one is of none. */
const hasKey =
  (key: string) =>
  ({ message }: Entry): boolean => {
    try {
      return (fairnessOf(decodeTaskMessage(message).headers)?.key ?? '') === key;
    } catch {
      return false;
    }
  };
