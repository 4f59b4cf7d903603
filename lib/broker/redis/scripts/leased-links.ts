import type { Watcher } from '../../links.js';
import { type LeasedStep, type StepsOfRun, StepWatcher } from './task-lease.js';
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
/** What the field of a step begins with, and where a link has the run. */
const FIELD = 's:';
const RUN_AT = 2;
const NO_BYTES = Buffer.alloc(0);

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

  /** As TaskLease has it, of the last task. */
  step: LeasedStep | null | undefined = null;
  private steps: StepsOfRun | undefined;
  /** The link that these were read from. */
  private last: Buffer = NO_BYTES;

  /** Who watches the next task; undefined when nobody does. */
  next(id: string): readonly Watcher[] | undefined {
    const link = this.links[this.index++];
    this.step = null;
    if (!link) return this.members && this.batchOf(id);
    const start = link[0] === TOLD ? 1 : 0;
    if (link[start] !== STEP) return readWatchers(link.toString('utf8', start));
    this.step = undefined;
    if (start === 0) return this.stepOf(link, id);
    const steps = this.stepsOf(link.subarray(start), id);
    return steps ? [watcherOf(this.queue, steps, nameOf(link, steps, start))] : [];
  }

  /** Links of steps that began together are the same up to the name. */
  private stepOf(link: Buffer, id: string): readonly Watcher[] {
    const { steps } = this;
    const isLike = steps !== undefined && link.length > steps.headSize && isSame(link, this.last, steps.headSize);
    const found = isLike ? steps : this.stepsOf(link, id);
    if (!found) return []; // it is damaged
    const name = nameOf(link, found, 0);
    this.step = { steps: found, name };
    return [watcherOf(this.queue, found, name)];
  }

  private stepsOf(link: Buffer, id: string): StepsOfRun | undefined {
    this.last = link;
    return (this.steps = readLink(link, id));
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

/** A link as link-fields.lua has it; undefined when it is damaged. */
function readLink(link: Buffer, id: string): StepsOfRun | undefined {
  const size = link[1] ?? 0;
  const stop = link.indexOf(0, RUN_AT);
  const headSize = stop + 1 + size + FIELD.length;
  if (!(stop > 0 && size >= TIME_SIZE && headSize < link.length)) return undefined;
  return {
    run: RUNS.read(link, RUN_AT, stop),
    since: String(link.readDoubleLE(stop + 1)),
    hint: Buffer.from(link.subarray(stop + 1, stop + 1 + size)), // the link is a view of the whole reply
    idPrefix: id.slice(0, id.length - STEPS.read(link, headSize, link.length).length),
    headSize,
  };
}

/** From the end, where links of other runs differ. */
function isSame(one: Buffer, other: Buffer, size: number): boolean {
  for (let i = size - 1; i >= 0; i--) if (one[i] !== other[i]) return false;
  return true;
}

const nameOf = (link: Buffer, { headSize }: StepsOfRun, start: number): string =>
  STEPS.read(link, start + headSize, link.length);

const watcherOf = (queue: string, steps: StepsOfRun, step: string): Watcher => new StepWatcher(queue, steps, step);
