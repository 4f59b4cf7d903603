import { answerNameOf, type StepField, UNDO_PREFIX } from '../broker/checkpoints.js';
import { toDate } from '../clock.js';
import type {
  HandlerStepInfo,
  HandlerStepKind,
  HandlerStepList,
  HandlerStepState,
  SignalInfo,
} from './handler-step.js';
import type { AnswerRecord, StepRecord, UndoRecord } from './step-record.js';

/** The result of a step, as far as it was read. */
export interface StepResult {
  readonly bytes: Buffer | undefined;
  readonly size: number;
}

export interface StoredOverview {
  /** All of them, in their order. */
  readonly steps: readonly StepRecord[];
  readonly undo: UndoRecord | undefined;
  /** How called tasks have ended. */
  readonly answers: ReadonlyMap<StepRecord, AnswerRecord | undefined>;
  /** How many signals of each name have come. */
  readonly signals: ReadonlyMap<string, number>;
  readonly now: number;
}

/** All steps of a task: what one of them is depends on others. */
export class StepOverview {
  /** Which of the signals of its name a wait takes, from 1 on. */
  private readonly nths = new Map<StepRecord, number>();
  private readonly waits = new Map<string, StepRecord[]>();
  private readonly undone: ReadonlySet<string>;
  private readonly life: number;

  constructor(private readonly stored: StoredOverview) {
    const { steps } = stored;
    this.life = steps[0]?.life ?? 0;
    const undoers = steps.filter((step) => step.kind === 'undo' && step.ended !== undefined && !step.failed);
    this.undone = new Set(undoers.map(({ name }) => name.slice(UNDO_PREFIX.length)));
    for (const step of steps) {
      if (step.kind !== 'wait' || step.signal === undefined || step.timedOut) continue; // that one takes none
      const ofSignal = this.waits.get(step.signal) ?? [];
      this.waits.set(step.signal, ofSignal);
      this.nths.set(step, ofSignal.push(step));
    }
  }

  get steps(): readonly StepRecord[] {
    return this.stored.steps;
  }

  /** Once all are undone, what is stored from then on is of the next life. */
  get undoing(): HandlerStepList['undoing'] {
    const { undo } = this.stored;
    if (!undo || undo.life - Number(undo.over) !== this.life) return undefined;
    return { error: undo.error, over: undo.over };
  }

  signals(): SignalInfo[] {
    const names = [...this.stored.signals.keys()].filter((name) => this.cameOf(name) > 0).sort();
    return names.map((name) => {
      const taken = (this.waits.get(name) ?? []).filter((wait) => this.stateOf(wait) === 'done').length;
      return { name, count: this.cameOf(name), taken };
    });
  }

  /** Where the result of a step is; `undefined` when it has none, or nobody knows. */
  placeOf(record: StepRecord): StepField | undefined {
    const { name, kind, resultSize } = record;
    if (kind === 'wait') {
      const isKnown = this.life === 0 || this.isBegunAnew;
      if (!isKnown || this.stateOf(record) !== 'done') return undefined;
      return { signal: record.signal!, n: this.before(record.signal!) + this.nths.get(record)! };
    }
    if (this.stored.answers.get(record)?.ok) return { answer: answerNameOf(record.name, record.life) };
    return resultSize > 0 ? { step: name } : undefined;
  }

  view(record: StepRecord, result: StepResult | undefined): HandlerStepInfo {
    const { name, kind, at, ended, until, signal, child, tries, done } = record;
    const state = this.stateOf(record);
    const isTimed = (kind === 'sleep' && state === 'done') || record.timedOut;
    const end = ended ?? (isTimed ? until : undefined);
    return {
      name,
      kind: kind as HandlerStepKind,
      state,
      startedAt: toDate(at),
      endedAt: end === undefined ? undefined : toDate(end),
      wakeAt: isOpen(record, state) && until !== undefined ? toDate(until) : undefined,
      signal,
      child,
      tries,
      done,
      error: record.error ?? this.stored.answers.get(record)?.why,
      result: parse(result?.bytes),
      resultSize: result?.size ?? 0,
    };
  }

  private stateOf(record: StepRecord): HandlerStepState {
    const { name, kind, ended, until = 0, tries = 0, timedOut, failed } = record;
    const { answers, now } = this.stored;
    const answer = answers.get(record);
    if (failed || timedOut) return 'failed';
    if (this.undone.has(name)) return 'undone';
    if (ended !== undefined) return 'done';
    if (answer) return answer.ok ? 'done' : 'failed';
    if (kind === 'sleep') return until > now ? 'asleep' : 'done';
    if (kind === 'wait') return this.hasCome(record) ? 'done' : 'waiting';
    if (tries > 0) return 'retrying';
    return kind === 'call' ? 'waiting' : 'running';
  }

  private hasCome(wait: StepRecord): boolean {
    return wait.signal !== undefined && this.nths.get(wait)! <= this.cameOf(wait.signal);
  }

  private cameOf(signal: string): number {
    return (this.stored.signals.get(signal) ?? 0) - this.before(signal);
  }

  /** The task was run again after all was undone, and not all is undone again: what is stored of signals is of the time before. */
  private get isBegunAnew(): boolean {
    return this.life > 0 && this.stored.undo?.life === this.life;
  }

  /** How many signals of the name were for the steps that were undone. */
  private before(signal: string): number {
    if (!this.isBegunAnew) return 0;
    const { signals } = this.stored.undo!;
    return Object.hasOwn(signals, signal) ? Number(signals[signal]) : 0;
  }
}

/** What has no end of its own has none to show: a call is only asked for again then. */
const isOpen = ({ kind }: StepRecord, state: HandlerStepState): boolean =>
  state === 'asleep' || state === 'retrying' || (state === 'waiting' && kind === 'wait');

function parse(bytes: Buffer | undefined): unknown {
  if (!bytes || bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
