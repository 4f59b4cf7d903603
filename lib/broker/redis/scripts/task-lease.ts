import type { StepLink } from '../../../task/contexts.js';
import type { Lease } from '../../broker.js';
import { HINT_NAMES_AT, namesBefore } from './run-layout.js';

/** What the links of steps of a run have in common that began together. */
export interface StepsOfRun {
  readonly run: string;
  /** When the run has started, in milliseconds. */
  readonly since: string;
  /** L.hint of run-successes.lua. */
  readonly hint: Buffer;
  /** What the ids of the tasks of the run begin with, up to the name of the step. */
  readonly idPrefix: string;
  /** Bytes of a link before the name of the step. */
  readonly headSize: number;
}

/** The task of a step that only its run watches, and that has not failed. */
export interface LeasedStep {
  readonly steps: StepsOfRun;
  readonly name: string;
}

/** The link of a step. Few handlers read which steps are before theirs. */
export class StepWatcher implements StepLink {
  readonly k = 'r';
  readonly run: string;
  readonly since: string;
  readonly #hint: Buffer;

  constructor(
    readonly to: string,
    { run, since, hint }: StepsOfRun,
    readonly step: string,
  ) {
    this.run = run;
    this.since = since;
    this.#hint = hint;
  }

  get before(): readonly string[] | undefined {
    return namesBefore(this.#hint.toString('utf8', HINT_NAMES_AT));
  }
}

/** A lease with what its claim has read: so the script that settles the task need not read it again. */
export class TaskLease implements Lease {
  renewing?: number | undefined;
  slot?: number | undefined;
  readonly #step: LeasedStep | null | undefined;

  constructor(
    readonly queue: string,
    readonly id: string,
    public expiresAt: number,
    step: LeasedStep | null | undefined,
  ) {
    this.#step = step;
  }

  /** null: the task is no step, or one that others watch, too; undefined: unknown. */
  static stepOf(lease: Lease): LeasedStep | null | undefined {
    return #step in lease ? lease.#step : undefined;
  }
}
