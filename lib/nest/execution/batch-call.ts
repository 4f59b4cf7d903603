import type { Type } from '@nestjs/common';
import type { TaskContext } from '../../task/context.js';
import { PARAM_TYPE } from '../names/nest.constants.js';

/** By the array of contexts, which is an argument of the call. */
const calls = new WeakMap<object, BatchCall>();

/** The call of a batch handler that has this argument; `undefined` for that of one task. */
export const callOf = (context: unknown): BatchCall | undefined =>
  Array.isArray(context) ? calls.get(context) : undefined;

export const fieldOf = (payload: unknown, field: string): unknown =>
  (payload as Record<string, unknown> | null | undefined)?.[field];

type RunPipes = (value: unknown, metatype: Type | undefined) => Promise<unknown>;

/**
 * One call of a batch handler through Nest's pipeline. The pipes get the payloads one by one. The handler gets arrays without those
 * that a pipe has refused, so every parameter waits until the pipes of all have run. An interceptor may call the handler again, and
 * then they run again: that is another round.
 */
export class BatchCall {
  private round: Round | undefined;

  /** @param own how many parameters of the method are ours */
  constructor(
    private readonly payloads: readonly unknown[],
    private readonly contexts: readonly TaskContext[],
    private readonly own: number,
    private readonly items: Type | undefined,
  ) {
    calls.set(contexts, this);
  }

  /** What pipes threw in the last round, by the position of the task. */
  get refused(): ReadonlyMap<number, unknown> {
    return this.round?.refused ?? new Map();
  }

  /** The value of a parameter, before its pipes. */
  param(type: number, data: unknown): BatchParam {
    if (!this.round || this.round.isFull) this.round = new Round(this.own);
    this.round.begun += 1;
    if (type !== PARAM_TYPE.payload) return new BatchParam(this.round, this.contexts, false, undefined);
    if (typeof data !== 'string') return new BatchParam(this.round, this.payloads, true, this.items);
    const fields = this.payloads.map((payload) => fieldOf(payload, data));
    return new BatchParam(this.round, fields, true, undefined);
  }
}

class Round {
  readonly refused = new Map<number, unknown>();
  begun = 0;
  private arrived = 0;
  private open = (): void => undefined;
  private readonly opened = new Promise<void>((resolve) => (this.open = resolve));

  constructor(private readonly params: number) {}

  get isFull(): boolean {
    return this.begun === this.params;
  }

  /** Resolves when the pipes of all parameters have run. */
  arrive(): Promise<void> {
    this.arrived += 1;
    if (this.arrived === this.params) this.open();
    return this.opened;
  }
}

/** A parameter of one round: an array with a value per task. */
export class BatchParam {
  constructor(
    private readonly round: Round,
    private readonly values: readonly unknown[],
    private readonly isPayload: boolean,
    private readonly metatype: Type | undefined,
  ) {}

  /** The array that the handler gets. @throws what a pipe threw, when no task is left */
  async through(pipes: readonly unknown[], run: RunPipes): Promise<readonly unknown[]> {
    const { round } = this;
    const { refused } = round;
    const values = this.isPayload && pipes.length > 0 ? await this.runAll(run) : this.values;
    await round.arrive();
    if (refused.size === 0) return values;
    if (refused.size === values.length) throw refused.get(0);
    return values.filter((_, index) => !refused.has(index));
  }

  private async runAll(run: RunPipes): Promise<readonly unknown[]> {
    const { refused } = this.round;
    const ends = await Promise.allSettled(this.values.map((value) => run(value, this.metatype)));
    return ends.map((end, index) => {
      if (end.status === 'fulfilled') return end.value;
      if (!refused.has(index)) refused.set(index, end.reason);
      return undefined;
    });
  }
}
