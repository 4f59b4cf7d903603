import type { Lease } from '../broker/broker.js';
import { RECORD } from '../broker/checkpoints.js';
import { TestingError } from '../errors.js';
import type { InMemoryBroker } from './in-memory-broker.js';
import { noCrashInSleep, noSuchStep } from './testing.messages.js';

/** Has the server of a task die as soon as a step of its handler is stored: once, in the next run. */
export class StepCrash {
  /** The step; `undefined`: none, or its server has died. */
  private awaited: string | undefined;
  private readonly stored = new Set<string>();

  constructor(
    private readonly broker: InMemoryBroker,
    private readonly crash: (lease: Lease) => Promise<boolean>,
  ) {}

  arm(step: string): void {
    this.awaited = step;
    this.stored.clear();
    this.broker.checkpoints.onStored = async (lease, name) => {
      this.stored.add(name);
      if (name !== this.awaited) return false;
      this.disarm();
      return this.crash(lease);
    };
  }

  /** The run is over. @throws TestingError when the step was not stored in it */
  async end(): Promise<void> {
    const { awaited } = this;
    if (awaited === undefined) return;
    this.disarm();
    const { checkpoints } = this.broker;
    const lists = await Promise.all(
      this.broker.tasks().map(({ message: { queue, id } }) => checkpoints.list(queue, id)),
    );
    const all = [...this.stored, ...lists.flatMap(({ steps }) => steps)];
    const known = new Set(all.filter((name) => !name.startsWith(RECORD)));
    throw new TestingError(known.has(awaited) ? noCrashInSleep(awaited) : noSuchStep(awaited, [...known]));
  }

  private disarm(): void {
    this.awaited = undefined;
    this.broker.checkpoints.onStored = undefined;
  }
}
