import type { Lease } from '../../broker/broker.js';
import { answerNameOf, type CheckpointsRole, type StoredSteps, UNDO_RECORD } from '../../broker/checkpoints.js';
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
  decodeUndoRecord,
  encodeCheckpoint,
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
   */
  takeTurn(step: Step): boolean {
    if (this.onChange === 'continue') return true;
    const { checkpoints, unasked, isUndoing } = this.known!;
    const [first] = unasked;
    if (!checkpoints.has(step.name)) {
      if (isUndoing) return true;
      if (first?.n === this.next) {
        this.newcomer ??= step.name;
        return false;
      }
      if (this.newcomer === step.name) this.newcomer = undefined;
      step.n = this.next++;
      return true;
    }
    if (first?.name !== step.name) return false;
    this.place(step);
    return true;
  }

  /** Those before it do not come. Compensations are given by whatever steps come. @throws StepsChangedError */
  giveUpTurn(step: Step): void {
    const { isUndoing, unasked } = this.known!;
    if (isUndoing) return this.place(step);
    const { name, n } = unasked[0]!;
    throw this.changed(`step ${n + 1} was "${name}", and is "${this.newcomer ?? step.name}" now`);
  }

  private place(step: Step): void {
    const { checkpoints, unasked } = this.known!;
    step.n = checkpoints.get(step.name)!.n;
    unasked.splice(
      unasked.findIndex(({ name }) => name === step.name),
      1,
    ); // the first, most likely
    this.next = Math.max(this.next, step.n + 1);
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
        throw this.changed(`step "${name}" was another kind of step (${found.kind}), and is ${kind} now`);
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

  /** After the handler has returned: what was stored and not asked for. */
  get leftOver(): StepsChangedError | undefined {
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

  private changed(how: string): StepsChangedError {
    return new StepsChangedError(
      `the handler of ${this.options.label} does not have the steps that are stored: ${how}. If its code has changed, give it ` +
        'its steps in the old order, and new ones behind them or a new task type. If not, steps beside one another come in another ' +
        "order: give it onChange: 'continue', and each step a name of its own",
    );
  }

  private requireVersion(): void {
    if (this.options.options.onOtherVersion !== 'fail') return;
    const other = [...this.known!.checkpoints.values()].find(({ v = 1 }) => v !== this.version);
    if (!other) return;
    throw new StepsChangedError(
      `${this.options.label} has steps of version ${other.v ?? 1} of its handler, which is of version ${this.version} now ` +
        "and has onOtherVersion: 'fail'",
    );
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
    const all = [...stored.checkpoints].filter(([name]) => name !== UNDO_RECORD);
    const decoded = all.map(([name, bytes]) => [name, this.decode(name, bytes)] as const);
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
    return { checkpoints: new Map(own), answers, signals, undo, life, isUndoing, begunBy, unasked };
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
