import type { Lease } from '../../broker/broker.js';
import {
  answerNameOf,
  type CheckpointsRole,
  PLACE_PREFIX,
  RECORD,
  type StoredSteps,
  UNDO_RECORD,
} from '../../broker/checkpoints.js';
import { hasCode } from '../../error-code.js';
import {
  InvalidStepError,
  LeaseExpiredError,
  StepFailedError,
  StepNotStoredError,
  StepsChangedError,
  TaskSuspended,
} from '../../errors.js';
import type { StepsOptions } from '../../task/steps-options.js';
import {
  type Answer,
  type Checkpoint,
  decodeAnswer,
  decodeCheckpoint,
  decodePlace,
  decodeUndoRecord,
  encodeCheckpoint,
  encodePlace,
  encodeUndoRecord,
  type UndoRecord,
} from './checkpoint.js';

/** A step that the handler asks for. */
export interface Step {
  readonly name: string;
  /** Its position among the steps of the task; until it is its turn, among those of this call. */
  n: number;
}

/** What is stored, and what this call has not asked for yet. */
interface Known {
  readonly checkpoints: ReadonlyMap<string, Checkpoint>;
  /** By the name of the step, as {@link StepRecords.answerName} has it. */
  readonly answers: StoredSteps['answers'];
  readonly signals: StoredSteps['signals'];
  readonly undo: UndoRecord | undefined;
  /** How often the steps were undone, and the task was run again since. */
  readonly life: number;
  /** Whether they are to be undone, or being undone. */
  readonly isUndoing: boolean;
  /** The version of the handler that has begun the task. */
  readonly begunBy: number;
  /** Those that this call has not asked for yet, in their order. */
  readonly unasked: Step[];
  /** The positions of steps that had failed, and of which nothing else is stored, by name. */
  readonly places: ReadonlyMap<string, number>;
  readonly keptPositions: ReadonlySet<number>;
}

export interface StepRecordsOptions {
  readonly checkpoints: Pick<CheckpointsRole, 'read' | 'write'>;
  readonly lease: Lease;
  /** Names the task in messages. */
  readonly label: string;
  readonly options: StepsOptions;
  /** Its message says that its steps are undone. */
  readonly isUndoing: boolean;
  /** Nothing is stored. What comes while the handler runs, such as a signal, is found when it goes to sleep. */
  readonly isBare: boolean | undefined;
}

const UNDOING = 'as its task has failed for good and its steps are undone';

const NOTHING_STORED: StoredSteps = { checkpoints: new Map(), answers: new Map(), signals: new Map() };

/** What is stored of the steps of one task, read once per call of its handler, and compared with what the handler asks for. */
export class StepRecords {
  private known: Known | undefined;
  private reading: Promise<Known> | undefined;
  /** The position of the next step. */
  private next = 0;
  /** Positions that are yet to be stored, and the last call that stores some. */
  private kept: Step[] = [];
  private keeping: Promise<unknown> | undefined;
  /** What a step has thrown that does not fit: no other step goes on in this call. */
  private refused: StepsChangedError | undefined;
  /** One that is not stored, and waits as another one is stored in its place. */
  private newcomer: string | undefined;
  private readonly onChange: NonNullable<StepsOptions['onChange']>;
  private readonly version: number;

  constructor(private readonly options: StepRecordsOptions) {
    const { onChange = 'fail', version = 1 } = options.options;
    this.onChange = onChange;
    this.version = version;
  }

  /** `undefined`: nothing was read yet. */
  get loaded(): Known | undefined {
    return this.known;
  }

  /** Reads what is stored, unless it was read. @throws StepsChangedError when it is of a version that the handler refuses */
  async load(): Promise<Known> {
    if (this.known) return this.known;
    this.reading ??= this.read();
    this.known = await this.reading;
    this.requireVersion();
    return this.known;
  }

  /** The version of the handler that has begun the task: this one, when nothing is stored. */
  async begunBy(): Promise<number> {
    return (await this.load()).begunBy;
  }

  /** Reads what is stored; without an error when that fails, as another one is on its way. */
  async tryToLoad(): Promise<void> {
    await this.load().catch(() => undefined);
  }

  /** Whether anything is stored of a step, readable or not. @throws when the store does not reply */
  async hasBegun(): Promise<boolean> {
    try {
      await this.load();
    } catch (error) {
      if (!this.known && !hasCode(error, 'ASYNQ_INVALID_STEP')) throw error;
    }
    const { known } = this;
    return !known || known.checkpoints.size > 0 || known.isUndoing;
  }

  /** Whether steps were being undone when the task was archived by hand, or in vain: the call goes on with that. */
  get mustGoOnUndoing(): UndoRecord | undefined {
    const { known } = this;
    return known?.isUndoing && !known.undo!.over ? known.undo : undefined;
  }

  /**
   * Gives the step its position, if it is its turn: behind those that had begun before it in earlier calls. One that is not stored comes where none
   * is stored. All is loaded.
   *
   * @throws StepsChangedError when a step before it did not fit
   */
  takeTurn(step: Step): boolean {
    const { checkpoints, places, unasked, isUndoing } = this.known!;
    if (this.refused && !isUndoing) throw this.refused;
    if (this.onChange === 'continue') return true;
    const [first] = unasked;
    if (checkpoints.has(step.name)) {
      if (first?.name !== step.name) return false;
      this.place(step);
      return true;
    }
    if (isUndoing) return true;
    if (first && first.n <= (places.get(step.name) ?? this.nextFree())) {
      this.newcomer ??= step.name;
      return false;
    }
    if (this.newcomer === step.name) this.newcomer = undefined;
    this.place(step);
    return true;
  }

  /** Where a step begins that was not there before. */
  private nextFree(): number {
    while (this.known!.keptPositions.has(this.next)) this.next++;
    return this.next;
  }

  /** Those before it do not come. Compensations are given by whatever steps come. @throws StepsChangedError */
  giveUpTurn(step: Step): void {
    const { isUndoing, unasked } = this.known!;
    if (isUndoing) return this.place(step);
    const { name, n } = unasked[0]!;
    this.refuse(`step ${n + 1} was "${name}", and is "${this.newcomer ?? step.name}" now`);
  }

  private place(step: Step): void {
    const { checkpoints, places, unasked } = this.known!;
    const stored = checkpoints.get(step.name);
    step.n = stored?.n ?? places.get(step.name) ?? this.nextFree();
    this.next = Math.max(this.next, step.n + 1);
    if (!stored) return;
    unasked.splice(
      unasked.findIndex(({ name }) => name === step.name),
      1,
    ); // the first, most likely
  }

  /**
   * A step has failed, and nothing is stored of it. If its handler goes on, what comes then comes behind it in the next call, too: only its position
   * says so.
   */
  keepPlace(step: Step): void {
    const { checkpoints, places, isUndoing } = this.known!;
    if (this.onChange === 'continue' || isUndoing || checkpoints.has(step.name) || places.has(step.name)) return;
    this.kept.push(step);
  }

  /** Before another step begins: stores the positions of those that have failed. `undefined`: there are none. */
  storePlaces(): Promise<unknown> | undefined {
    const { kept } = this;
    if (kept.length === 0) return this.keeping;
    this.kept = [];
    const { life } = this.known!;
    const stores = kept.map(({ name, n }) => this.store(PLACE_PREFIX + name, encodePlace({ n, life })));
    this.keeping = Promise.all([this.keeping, ...stores]);
    return this.keeping;
  }

  /**
   * What was stored of the step, whose turn it is. While the task is undone, only steps that are over answer. One behind which others are stored has
   * failed before these, and its handler went another way.
   *
   * @throws StepsChangedError; while the task is undone StepFailedError, TaskSuspended
   */
  find({ name }: Step, kind: Checkpoint['kind'], isOver: (checkpoint: Checkpoint) => boolean): Checkpoint | undefined {
    const { checkpoints, isUndoing, unasked } = this.known!;
    let found = checkpoints.get(name);
    if (found && found.kind !== kind) {
      if (this.onChange !== 'continue')
        this.refuse(`step "${name}" was another kind of step (${found.kind}), and is ${kind} now`);
      found = undefined;
    }
    if (!isUndoing || (found && isOver(found))) return found;
    if (found || unasked.length === 0) throw new TaskSuspended(name, UNDOING);
    throw new StepFailedError(name, `step "${name}" has failed, and is not tried again, ${UNDOING}`);
  }

  /** The payload of the nth signal of this name, from 1 on, if it has come. All is loaded. */
  signal(name: string, n: number): Buffer | undefined {
    return this.known!.signals.get(name)?.[this.signalNumber(name, n) - 1];
  }

  /** Which of those that the task ever got is meant. All is loaded. */
  signalNumber(name: string, n: number): number {
    const { life, undo } = this.known!;
    const { signals = {} } = undo ?? {};
    // A signal may have the name of something that every object has.
    return n + (life > 0 && Object.hasOwn(signals, name) ? signals[name]! : 0);
  }

  /** See {@link answerNameOf}. */
  async answerName(step: string): Promise<string> {
    const { life } = await this.load();
    return answerNameOf(step, life);
  }

  /** An answer to a step that has not asked is one to an earlier task of this id. */
  async answer(step: string): Promise<Answer | undefined> {
    const { answers, checkpoints } = await this.load();
    const bytes = checkpoints.has(step) ? answers.get(await this.answerName(step)) : undefined;
    return bytes && decodeAnswer(bytes);
  }

  /**
   * A checkpoint as it is stored. Its version is that which has begun the task, not that of who writes it: a step may be stored again by a later
   * version, as with another try, or be the first to end only then.
   */
  encode(checkpoint: Checkpoint): Buffer {
    const { life = 0, begunBy: version = this.version } = this.known ?? {};
    return encodeCheckpoint({
      ...checkpoint,
      ...(version > 1 && { v: version }),
      ...(life > 0 && { life }),
    });
  }

  /** @throws LeaseExpiredError */
  async write({ name }: Pick<Step, 'name'>, checkpoint: Checkpoint): Promise<void> {
    await this.store(name, this.encode(checkpoint));
  }

  /** All is undone. From now on what is stored is of an earlier life. @throws LeaseExpiredError */
  async endLife(undo: UndoRecord): Promise<void> {
    const { signals, life } = await this.load();
    const counts = Object.fromEntries([...signals].map(([name, all]) => [name, all.length]));
    await this.store(UNDO_RECORD, encodeUndoRecord({ ...undo, over: true, life: life + 1, signals: counts }));
  }

  /** After the handler has returned: what it has caught of this, or what was stored and not asked for. */
  get misfit(): StepsChangedError | undefined {
    if (this.refused) return this.refused;
    const left = (this.known?.unasked ?? []).map(({ name }) => name);
    if (left.length === 0 || this.onChange === 'continue') return undefined;
    return new StepsChangedError(
      `${this.options.label} has stored steps that its handler does not ask for any more: ${quoted(left)}`,
    );
  }

  private async store(name: string, bytes: Buffer): Promise<void> {
    const { checkpoints, lease } = this.options;
    if (!(await reached(checkpoints.write(lease, name, bytes)))) throw new LeaseExpiredError();
  }

  private refuse(how: string): never {
    this.refused = new StepsChangedError(
      `the handler of ${this.options.label} does not have the steps that are stored: ${how}. If its code has changed, give it ` +
        'its steps in the old order, and new ones behind them or a new task type. If not, steps beside one another come in another ' +
        "order: give it onChange: 'continue', and each step a name of its own",
    );
    throw this.refused;
  }

  private requireVersion(): void {
    if (this.options.options.onOtherVersion !== 'fail') return;
    const other = [...this.known!.checkpoints.values()].find(({ v = 1 }) => v !== this.version);
    if (!other) return;
    this.refused = new StepsChangedError(
      `${this.options.label} has steps of version ${other.v ?? 1} of its handler, which is of version ${this.version} now ` +
        "and has onOtherVersion: 'fail'",
    );
    throw this.refused;
  }

  private decode(name: string, bytes: Buffer): Checkpoint {
    try {
      return decodeCheckpoint(bytes);
    } catch (error) {
      throw new InvalidStepError(
        `what is stored of step "${name}" of ${this.options.label} is damaged: ${(error as Error).message}; ` +
          `delete the field did:${name} of its hash to have the step run again`,
      );
    }
  }

  private async read(): Promise<Known> {
    const { lease, checkpoints, isBare } = this.options;
    const stored = isBare ? NOTHING_STORED : await reached(checkpoints.read(lease.queue, lease.id));
    const record = stored.checkpoints.get(UNDO_RECORD);
    const undo = record && decodeUndoRecord(record);
    const isUndoing = undo !== undefined && (!undo.over || this.options.isUndoing);
    const all = [...stored.checkpoints];
    const decoded = all
      .filter(([name]) => !name.startsWith(RECORD))
      .map(([name, bytes]) => [name, this.decode(name, bytes)] as const);
    const last = undo?.life ?? decoded.reduce((most, [, { life = 0 }]) => Math.max(most, life), 0);
    // Until the task is run again, the life that was undone goes on.
    const life = last - (undo?.over && isUndoing ? 1 : 0);
    const own = decoded.filter(([, one]) => (one.life ?? 0) === life);
    const asked = own.filter(([, { kind }]) => kind !== 'undo');
    const unasked = asked.map(([name, { n }]) => ({ name, n })).sort((one, other) => one.n - other.n);
    // Of steps side by side the first may not have been stored.
    const first = asked.length > 0 && asked.reduce((least, one) => (one[1].n < least[1].n ? one : least))[1];
    const begunBy = first ? (first.v ?? 1) : this.version;
    const { answers, signals } = stored;
    const kept = all.filter(([name]) => name.startsWith(PLACE_PREFIX));
    const placed = kept.map(([name, bytes]) => [name.slice(PLACE_PREFIX.length), decodePlace(bytes)] as const);
    const places = new Map(placed.flatMap(([name, place]) => (place.life === life ? [[name, place.n]] : [])));
    const keptPositions = new Set(places.values());
    return {
      checkpoints: new Map(own),
      answers,
      signals,
      undo,
      life,
      isUndoing,
      begunBy,
      unasked,
      places,
      keptPositions,
    };
  }
}

/** What the store replies. @throws StepNotStoredError when it does not */
export async function reached<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw new StepNotStoredError(error);
  }
}

export const quoted = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(', ');
