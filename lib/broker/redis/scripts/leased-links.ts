import type { Watcher } from '../../links.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';

/** What the link of a step begins with. */
const STEP = 'r'.charCodeAt(0);

/** Who watches the tasks that a script has leased, as L.links_of of links.lua packs it. */
export class LeasedLinks {
  private readonly values: PackedReader | undefined;
  /** By what the ids of members of a batch begin with. */
  private readonly members: ReadonlyMap<string, readonly Watcher[]> | undefined;

  constructor(
    private readonly queue: string,
    packed: Buffer,
  ) {
    if (packed.length === 0) return;
    const reader = new PackedReader(packed);
    if (reader.more()) {
      const members = new Map<string, readonly Watcher[]>();
      while (reader.more()) members.set(reader.text(), readWatchers(reader.text()));
      this.members = members;
    }
    reader.nextList();
    this.values = reader;
  }

  /** Who watches the next task; undefined when nobody does. */
  next(id: string): readonly Watcher[] | undefined {
    const value = this.values?.more() ? this.values.view() : undefined;
    if (!value?.length) return this.members?.get(id.slice(0, id.lastIndexOf('~') + 1));
    return value[0] === STEP ? [stepOf(this.queue, value)] : readWatchers(value.toString());
  }
}

const isWatcher = (one: unknown): boolean => typeof one === 'object' && one !== null;

const readWatchers = (text: string): readonly Watcher[] => readJson<Watcher[]>(text, []).filter(isWatcher);

/** The step of a run of this queue, as link-fields.lua has it: what is behind the time only scripts read. */
function stepOf(queue: string, link: Buffer): Watcher {
  const start = link[1]! + 3;
  const end = link.indexOf(0, start);
  const hint = end + 1;
  const [run, step] = [link.toString('utf8', start, end), link.toString('utf8', hint + link[2]!)];
  return { k: 'r', to: queue, run, since: String(link.readDoubleLE(hint)), step };
}
