import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Sleep } from '../../broker/broker.js';
import { UNDO_PREFIX, UNDO_RECORD } from '../../broker/checkpoints.js';
import { StepsChangedError } from '../../errors.js';
import { decodeJson } from '../../task/codec.js';
import { type Checkpoint, encodeUndoRecord, type UndoRecord } from './checkpoint.js';
import type { HandlerCall } from './handler-call.js';
import { observed } from './step-observer.js';
import { quoted, type Step, type StepRecords } from './step-records.js';
import { withinStep } from './step-work.js';

/** How long a step beside the others may take to give its compensation, once the handler has ended. */
const GIVEN_MS = 1_000;

/** Undoes what a step has done. */
export type Undo = (result: unknown) => unknown;

interface Compensation {
  readonly step: Step;
  readonly undo: Undo;
  /** JSON; empty: undefined. */
  readonly result: string;
}

/** What undoes the steps of a task that has failed for good. Each step gives its own when the handler asks for it. */
export class Compensations {
  /** All steps are undone: what the task has failed with. */
  undone: (UndoRecord & { readonly steps: readonly string[] }) | undefined;
  /** The step whose compensation runs, or has thrown. */
  current: string | undefined;
  private readonly compensations: Compensation[] = [];

  constructor(private readonly call: HandlerCall) {}

  add(compensation: Compensation): void {
    this.compensations.push(compensation);
  }

  /** Whether a step that has succeeded has one. `undefined`: nothing was read yet. */
  get isUsed(): boolean | undefined {
    const { loaded } = this.call.records;
    if (!loaded) return undefined;
    return this.compensations.length > 0 || [...loaded.checkpoints].some(([, one]) => isCompensable(one));
  }

  /** While the task is undone: resolves when each step has given its own, or nothing goes on, after a second at most. */
  async given(): Promise<void> {
    const { records, work } = this.call;
    const { checkpoints } = await records.load();
    for (const end = performance.now() + GIVEN_MS; performance.now() < end; await nextTurn()) {
      await work.quiet();
      if (this.notGiven(checkpoints).length === 0) break;
    }
    work.ended();
  }

  /**
   * Runs them, that of the last step first. The handler was called before, so that each step has given its own.
   *
   * @throws what a compensation throws; StepsChangedError when a step has not given its own
   */
  async undoAll(): Promise<void> {
    const { records, work, attempt, deps, label } = this.call;
    const { checkpoints, undo } = await records.load();
    await work.quiet();
    const backwards = this.compensations.toSorted((one, other) => other.step.n - one.step.n);
    const record = undo ?? { error: attempt.message.errorMsg, outcome: 'archive', at: deps.clock.now() };
    if (!record.over) {
      const lost = this.notGiven(checkpoints);
      if (lost.length > 0) {
        throw new StepsChangedError(
          `${label} cannot be undone: its handler does not ask any more, with an undo, for ${quoted(lost)}`,
        );
      }
      for (const compensation of backwards) {
        if (!checkpoints.has(UNDO_PREFIX + compensation.step.name)) await this.undo(compensation);
      }
      await records.endLife(record);
    }
    this.undone = { ...record, steps: backwards.map(({ step }) => step.name) };
  }

  private async undo({ step, undo, result }: Compensation): Promise<void> {
    const { records, work, deps } = this.call;
    const name = UNDO_PREFIX + step.name;
    work.requireAttempt();
    this.current = step.name;
    const at = deps.clock.now();
    await observed(deps.observer, { name, kind: 'undo' }, async () => {
      await withinStep(name, async () => undo(decodeJson(result)));
      await records.write({ name }, { n: step.n, kind: 'undo', at, ended: deps.clock.now() });
    });
  }

  /** The steps that are to be undone, and have not given theirs. */
  private notGiven(checkpoints: ReadonlyMap<string, Checkpoint>): string[] {
    const given = new Set(this.compensations.map(({ step }) => step.name));
    const isOpen = ([name, one]: readonly [string, Checkpoint]): boolean =>
      isCompensable(one) && !given.has(name) && !checkpoints.has(UNDO_PREFIX + name);
    return [...checkpoints].filter(isOpen).map(([name]) => name);
  }
}

const isCompensable = ({ undo, ended, failed }: Checkpoint): boolean =>
  undo !== undefined && ended !== undefined && !failed;

/** What is stored with the settlement that begins to undo. @param records `undefined`: the handler has not asked for its steps */
export const undoCheckpoint = (
  record: Pick<UndoRecord, 'error' | 'outcome' | 'at'>,
  records: StepRecords | undefined,
): NonNullable<Sleep['checkpoint']> => ({
  name: UNDO_RECORD,
  bytes: encodeUndoRecord({ ...record, signals: records?.loaded?.undo?.signals, life: records?.loaded?.life }),
});
