import { UndecodableMessageError } from '../../../errors.js';
import { decodeTaskMessage } from '../../../wire/codec.js';
import type { DamagedTask, Lease, LeasedTask } from '../../broker.js';
import type { Watcher } from '../../links.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';

/** Divides what a script has leased into tasks and damaged tasks. */
export class LeasedTasks {
  readonly tasks: LeasedTask[] = [];
  readonly damaged: DamagedTask[] = [];

  constructor(
    private readonly queue: string,
    /** Who watches which task, by its id; of members of batches by what their ids begin with. */
    private readonly links?: ReadonlyMap<string, readonly Watcher[]>,
  ) {}

  /** @param expiresAt Unix seconds; @param pendingSince milliseconds since the epoch, when asked for and known */
  add(id: string, expiresAt: number, raw: Buffer, pendingSince?: number): void {
    const lease: Lease = { queue: this.queue, id, expiresAt, renewing: undefined };
    try {
      const message = decodeTaskMessage(raw);
      if (message.id !== id) throw foreignMessage(id, message.id);
      const links = this.links && (this.links.get(id) ?? this.links.get(id.slice(0, id.lastIndexOf('~') + 1)));
      if (links) this.tasks.push({ lease, message, pendingSince, links });
      else this.tasks.push(pendingSince === undefined ? { lease, message } : { lease, message, pendingSince });
    } catch (error) {
      this.damaged.push({ lease, raw, error: error as Error });
    }
  }
}

/** Also for zero bytes, which decode as a message with empty fields. */
const foreignMessage = (id: string, other: string): UndecodableMessageError =>
  new UndecodableMessageError(
    `the message of task "${id}" is of a task "${other}"; see what else writes to the hash of the task`,
  );

const isWatcher = (one: unknown): boolean => typeof one === 'object' && one !== null;

/**
 * Who watches which task, as L.links_of of links.lua packs it: JSON; or, for the step of a run of this
 * queue, `r`, the run, a NUL, the step and any NULs.
 */
export function readLinks(queue: string, packed: Buffer): Map<string, readonly Watcher[]> {
  const reader = new PackedReader(packed);
  const links = new Map<string, readonly Watcher[]>();
  while (reader.more()) {
    const id = reader.text();
    const text = reader.text();
    links.set(id, text.startsWith('r') ? [stepOf(queue, text)] : readJson<Watcher[]>(text, []).filter(isWatcher));
  }
  return links;
}

function stepOf(queue: string, text: string): Watcher {
  const end = text.indexOf('\0');
  const behind = text.indexOf('\0', end + 1);
  return { k: 'r', to: queue, run: text.slice(1, end), step: text.slice(end + 1, behind < 0 ? undefined : behind) };
}
