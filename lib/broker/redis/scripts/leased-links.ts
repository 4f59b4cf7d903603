import type { Watcher } from '../../links.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';

/** Who watches the tasks that a script has leased, as L.links_of of links.lua packs it. */
export class LeasedLinks {
  private readonly texts: string[] = [];
  /** By what the ids of members of a batch begin with. */
  private readonly members: ReadonlyMap<string, readonly Watcher[]> | undefined;
  private position = 0;

  /** @param count how many tasks were leased */
  constructor(
    private readonly queue: string,
    packed: Buffer,
    count: number,
  ) {
    if (packed.length === 0) return;
    const reader = new PackedReader(packed);
    for (let left = count; left > 0; left--) this.texts.push(reader.text());
    if (!reader.more()) return;
    const members = new Map<string, readonly Watcher[]>();
    while (reader.more()) members.set(reader.text(), readWatchers(reader.text()));
    this.members = members;
  }

  /** Who watches the next task; undefined when nobody does. */
  next(id: string): readonly Watcher[] | undefined {
    const text = this.texts[this.position++];
    if (!text) return this.members?.get(id.slice(0, id.lastIndexOf('~') + 1));
    return text.startsWith('r') ? [stepOf(this.queue, text)] : readWatchers(text);
  }
}

const isWatcher = (one: unknown): boolean => typeof one === 'object' && one !== null;

const readWatchers = (text: string): readonly Watcher[] => readJson<Watcher[]>(text, []).filter(isWatcher);

/** The step of a run of this queue, as link-fields.lua has it: what is behind the step only scripts read. */
function stepOf(queue: string, text: string): Watcher {
  const start = text.charCodeAt(1) + 2;
  const end = text.indexOf('\0', start);
  return { k: 'r', to: queue, run: text.slice(start, end), step: text.slice(end + 1, text.indexOf('\0', end + 1)) };
}
