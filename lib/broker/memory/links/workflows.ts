import type { StepLink } from '../../../task/contexts.js';
import { waitInCircle } from '../../cycles.js';
import type { Caused } from '../../links.js';
import {
  type NewRun,
  type NewStep,
  type RunSummary,
  type StoredRun,
  type StoredStep,
  type WorkflowsRole,
  reasonOfCancelled,
} from '../../workflows.js';
import { wellFormed } from '../queue-store.js';
import type { LinkEngine } from './engine.js';
import { RunRecord, refuseSteps, type StepRecord } from './run-record.js';
import { Runs } from './runs.js';

const NOTHING: Caused = { parcels: [] };

type Reply<M extends keyof WorkflowsRole> = ReturnType<WorkflowsRole[M]>;

interface TaskName {
  readonly queue: string;
  readonly id: string;
}

export class MemoryWorkflows implements WorkflowsRole {
  private readonly records: Runs;

  constructor(private readonly engine: LinkEngine) {
    this.records = new Runs(engine);
    engine.homes.push((place) => (engine.find(place)?.runs.size ?? 0) > 0);
  }

  async start(
    queue: string,
    runs: readonly NewRun[],
  ): Promise<Caused & { readonly statuses: readonly ('started' | 'exists')[] }> {
    const place = wellFormed(queue);
    return this.engine.cause(place, (_, now) => {
      const records = runs.map((run) => newRecord(place, run, now));
      return { ...NOTHING, statuses: records.map((record) => this.startOne(place, record)) };
    });
  }

  async grow(queue: string, run: string, steps: readonly NewStep[]): Reply<'grow'> {
    if (waitInCircle(steps)) return { ...NOTHING, status: 'unknown' };
    return this.cause(queue, run, (record) => {
      if (!record) return { ...NOTHING, status: 'missing' };
      if (record.state !== 'running') return { ...NOTHING, status: 'ended' };
      const status = record.add(steps.map(named));
      if (status === 'added') this.records.settle(record);
      return { ...NOTHING, status };
    });
  }

  async run(queue: string, run: string): Promise<StoredRun | undefined> {
    return this.change(queue, run, (record) => record && { ...summarize(record), graph: describeSteps(record) });
  }

  async summary(queue: string, run: string): Promise<RunSummary | undefined> {
    return this.change(queue, run, (record) => record && summarize(record));
  }

  async runs(queue: string, { offset, size }: { offset: number; size: number }): Promise<RunSummary[]> {
    const place = wellFormed(queue);
    return this.engine.change(place, () => {
      const all = [...(this.engine.find(place)?.runs.values() ?? [])].reverse();
      return all.slice(offset, offset + size).map(summarize);
    });
  }

  async results(queue: string, run: string, steps: readonly string[]): Promise<(Buffer | undefined)[]> {
    return this.change(queue, run, (record) =>
      steps.map((name) => {
        const result = record?.steps.get(wellFormed(name))?.result;
        return result && Buffer.from(result);
      }),
    );
  }

  async resultsBefore({ to, run, step }: StepLink): Reply<'resultsBefore'> {
    return this.change(to, run, (record) => {
      if (!record) return undefined;
      const results = new Map<string, Buffer>();
      for (const name of record.steps.get(wellFormed(step))?.after ?? []) {
        const result = record.steps.get(name)?.result;
        if (result) results.set(name, Buffer.from(result));
      }
      return results;
    });
  }

  async cancel(queue: string, run: string, reason: string): Reply<'cancel'> {
    return this.cause(queue, run, (record) => {
      if (record?.state !== 'running') return { ...NOTHING, status: record ? 'ended' : 'missing', tasks: [] };
      return { ...NOTHING, status: 'cancelled', tasks: this.records.cancel(record, reason).map(taskOf) };
    });
  }

  async retry(queue: string, run: string): Reply<'retry'> {
    return this.cause(queue, run, (record) => {
      if (!record) return { ...NOTHING, status: 'missing', steps: 0 };
      const isOver = record.state === 'succeeded' || record.state === 'cancelled';
      const steps = isOver ? 0 : this.records.retry(record);
      return { ...NOTHING, status: steps > 0 ? 'retried' : 'notFailed', steps };
    });
  }

  async delete(queue: string, run: string): Reply<'delete'> {
    return this.cause(queue, run, (record) => {
      if (!record) return { ...NOTHING, status: 'missing' };
      if (record.state === 'running') return { ...NOTHING, status: 'running' };
      this.records.delete(record);
      return { ...NOTHING, status: 'deleted' };
    });
  }

  private startOne(place: string, record: RunRecord): 'started' | 'exists' {
    if (this.records.find(place, record.options.id)) return 'exists';
    this.records.start(record);
    return 'started';
  }

  private cause<T>(queue: string, run: string, work: (record: RunRecord | undefined) => T): T {
    const place = wellFormed(queue);
    return this.engine.cause(place, () => work(this.records.find(place, wellFormed(run))));
  }

  private change<T>(queue: string, run: string, work: (record: RunRecord | undefined) => T): T {
    const place = wellFormed(queue);
    return this.engine.change(place, () => work(this.records.find(place, wellFormed(run))));
  }
}

function newRecord(place: string, run: NewRun, now: number): RunRecord {
  const record = new RunRecord(place, { ...run, id: wellFormed(run.id) }, now);
  const status = record.add(run.steps.map(named));
  return status === 'added' ? record : refuseSteps(run.id, status);
}

const named = (step: NewStep): NewStep => ({
  ...step,
  name: wellFormed(step.name),
  after: step.after.map(wellFormed),
  request: {
    ...step.request,
    message: { ...step.request.message, payload: Buffer.from(step.request.message.payload) },
  },
});

const taskOf = ({ request }: StepRecord): TaskName => ({ queue: request.message.queue, id: request.message.id });

const summarize = ({
  place,
  options,
  state,
  startedAt,
  endedAt,
  steps,
  open,
  failed,
  reason,
}: RunRecord): RunSummary => ({
  queue: place,
  id: options.id,
  name: options.name,
  state,
  startedAt,
  endedAt,
  steps: steps.size,
  open,
  failed,
  reason,
});

function describeSteps(run: RunRecord): StoredStep[] {
  const steps = [...run.steps.values()].map(describeStep);
  const byName = new Map(steps.map((step) => [step.name, step]));
  return steps.map((step) => ({ ...step, error: step.error ?? reasonOfCancelled(step, byName, run.reason) }));
}

const describeStep = (step: StepRecord): StoredStep => ({
  name: step.name,
  type: step.request.message.type,
  queue: step.request.message.queue,
  after: step.after,
  onFailure: step.onFailure,
  optional: step.optional,
  state: step.state,
  error: step.error,
  readyAt: step.readyAt,
  endedAt: step.endedAt,
  hasResult: step.result !== undefined,
});
