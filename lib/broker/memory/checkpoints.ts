import {
  type CheckpointsRole,
  MAX_SIGNALS,
  type SignalStatus,
  type StepCall,
  type StepField,
  type StepNames,
  type StepValue,
  type StoredSteps,
} from '../checkpoints.js';
import type { Lease } from '../consumer.js';
import type { Caused } from '../links.js';
import type { LinkEngine } from './links/engine.js';
import type { StepCalls } from './links/step-calls.js';
import type { MemoryState } from './memory-state.js';
import { stepsOf, type TaskRecord, wellFormed } from './queue-store.js';

const copyOf = (bytes: Buffer): Buffer => Buffer.from(bytes);

export class MemoryCheckpoints implements CheckpointsRole {
  /** For tests: called when a step was stored. Resolves to whether its server has died with that. */
  onStored: ((lease: Lease, name: string) => Promise<boolean>) | undefined;

  constructor(
    private readonly state: MemoryState,
    private readonly links: LinkEngine,
    private readonly calls: StepCalls,
  ) {}

  async read(queue: string, id: string): Promise<StoredSteps> {
    return this.state.change(queue, (store) => {
      const steps = store.tasks.get(wellFormed(id))?.steps;
      const checkpoints = [...(steps?.checkpoints ?? [])].map(([name, bytes]) => [name, Buffer.from(bytes)] as const);
      const signals = [...(steps?.signals ?? [])].map(([name, all]) => [name, all.map(copyOf)] as const);
      const answers = [...(steps?.answers ?? [])].map(([name, bytes]) => [name, copyOf(bytes)] as const);
      return { checkpoints: new Map(checkpoints), signals: new Map(signals), answers: new Map(answers) };
    });
  }

  async list(queue: string, id: string): Promise<StepNames> {
    return this.state.change(queue, (store) => {
      const steps = store.tasks.get(wellFormed(id))?.steps;
      const signals = [...(steps?.signals ?? [])].map(([name, all]) => [name, all.length] as const);
      const [names, answers] = [steps?.checkpoints, steps?.answers].map((map) => [...(map?.keys() ?? [])]);
      return { steps: names!, answers: answers!, signals: new Map(signals) };
    });
  }

  async view(
    queue: string,
    id: string,
    fields: readonly StepField[],
    most: number,
  ): Promise<(StepValue | undefined)[]> {
    return this.state.change(queue, (store) => {
      const steps = store.tasks.get(wellFormed(id))?.steps;
      return fields.map((field) => {
        const bytes = steps && valueOf(steps, field);
        if (!bytes) return undefined;
        const shown = bytes.length <= most ? bytes : bytes.subarray(0, bytes.indexOf('\n') + 1);
        return { bytes: Buffer.from(shown), size: bytes.length };
      });
    });
  }

  async write(lease: Lease, name: string, checkpoint: Buffer): Promise<boolean> {
    const isStored = this.state.change(lease.queue, (store) => {
      const record = store.leased(lease);
      if (record) stepsOf(record).checkpoints.set(wellFormed(name), Buffer.from(checkpoint));
      return record !== undefined;
    });
    return isStored && !(await this.onStored?.(lease, name));
  }

  async call(lease: Lease, calls: readonly StepCall[]): Promise<Caused | undefined> {
    const id = wellFormed(lease.id);
    for (const { request } of calls) if (request) this.links.encode(request); // throws before anything is written
    const isOurs = this.links.change(lease.queue, (store) => {
      const record = store.leased(lease);
      if (!record) return false;
      for (const call of calls) {
        stepsOf(record).checkpoints.set(wellFormed(call.step), copyOf(call.checkpoint));
        this.calls.post(lease.queue, id, call);
      }
      return true;
    });
    if (!isOurs) return undefined;
    for (const { step } of calls) if (await this.onStored?.(lease, step)) return undefined;
    return { parcels: [] };
  }

  async signal(queue: string, id: string, name: string, payload: Buffer): Promise<SignalStatus> {
    return this.state.change(queue, (store, now) => {
      const record = store.tasks.get(wellFormed(id));
      if (!record) return 'missing';
      if (record.state === 'completed' || record.state === 'archived') return 'over';
      const key = wellFormed(name);
      const { signals } = stepsOf(record);
      const all = signals.get(key) ?? [];
      if (all.length >= MAX_SIGNALS) return 'full';
      signals.set(key, [...all, Buffer.from(payload)]);
      store.endSleep(wellFormed(id), record, now);
      return 'stored';
    });
  }
}

function valueOf(steps: NonNullable<TaskRecord['steps']>, field: StepField): Buffer | undefined {
  if ('step' in field) return steps.checkpoints.get(wellFormed(field.step));
  if ('answer' in field) return steps.answers.get(wellFormed(field.answer));
  return steps.signals.get(wellFormed(field.signal))?.[field.n - 1];
}
