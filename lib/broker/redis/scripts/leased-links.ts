import type { Watcher } from '../../links.js';
import { RecurringTexts } from '../../../wire/recurring-texts.js';
import { readJson } from './json.js';
import { PackedReader } from './packed-reader.js';

/** Ids of runs of which many steps run at a time, and names of steps. */
const RUNS = new RecurringTexts(2048, 128);
const STEPS = new RecurringTexts(1024, 48);

/** Bytes of the time that a run has started. */
const TIME_SIZE = 8;

/** What the link of a step begins with, and that of a task whose watchers know of its failure. */
const STEP = 'r'.charCodeAt(0);
const TOLD = '-'.charCodeAt(0);
/** What the field of a step begins with. */
const FIELD = 's:';

/** Who watches the tasks that a script has leased, as L.links_of of links.lua returns it. */
export class LeasedLinks {
  /** By what the ids of members of a batch begin with. */
  private readonly members: ReadonlyMap<string, readonly Watcher[]> | undefined;
  private index = 0;

  /** What the id of the last member begins with, and who watches it. */
  private batch = '';
  private watchers: readonly Watcher[] | undefined;

  constructor(
    private readonly queue: string,
    batches: Buffer,
    /** Of each task, in order; empty when no task has one. */
    private readonly links: readonly (Buffer | null)[],
  ) {
    const reader = new PackedReader(batches);
    if (!reader.more()) return;
    const members = new Map<string, readonly Watcher[]>();
    while (reader.more()) members.set(reader.text(), readWatchers(reader.text()));
    this.members = members;
  }

  /** Who watches the next task; undefined when nobody does. */
  next(id: string): readonly Watcher[] | undefined {
    const link = this.links[this.index++];
    if (!link) return this.members && this.batchOf(id);
    const start = link[0] === TOLD ? 1 : 0;
    return link[start] === STEP ? stepOf(this.queue, link, start) : readWatchers(link.toString('utf8', start));
  }

  /** Members that a server gets together are mostly of one batch. */
  private batchOf(id: string): readonly Watcher[] | undefined {
    const { batch } = this;
    if (batch === '' || !id.startsWith(batch) || id.includes('~', batch.length)) {
      this.batch = id.slice(0, id.lastIndexOf('~') + 1);
      this.watchers = this.members!.get(this.batch);
    }
    return this.watchers;
  }
}

const isWatcher = (one: unknown): boolean => typeof one === 'object' && one !== null;

const readWatchers = (text: string): readonly Watcher[] => readJson<Watcher[]>(text, []).filter(isWatcher);

/** The step of a run of this queue, as link-fields.lua has it: what is behind the time only scripts read. */
function stepOf(queue: string, link: Buffer, start: number): readonly Watcher[] {
  const first = start + 3 + link[start + 1]!;
  let hint = first + 1;
  while (hint < link.length && link[hint - 1] !== 0) hint++;
  const size = link[start + 2]!;
  const last = hint + size + FIELD.length;
  if (!(last <= link.length && size >= TIME_SIZE)) return []; // it is damaged
  const run = RUNS.read(link, first, hint - 1);
  return [
    { k: 'r', to: queue, run, since: String(link.readDoubleLE(hint)), step: STEPS.read(link, last, link.length) },
  ];
}
