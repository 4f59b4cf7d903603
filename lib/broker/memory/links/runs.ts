import { ceilSeconds, floorSeconds } from '../../../clock.js';
import type { Watcher } from '../../links.js';
import { taskIdOfStep } from '../../workflows.js';
import { sortedSetOf } from '../listing.js';
import { type QueueStore, type TaskRecord, wellFormed } from '../queue-store.js';
import { isBeingUndone } from '../settlements.js';
import type { Bodies } from './bodies.js';
import type { LinkEngine } from './engine.js';
import { watchersOfMark } from './new-task.js';
import type { RunRecord, StepRecord } from './run-record.js';
import { CONFLICT, DELETED, DUPLICATE, LATE } from './texts.js';

/** How often a run asks for the tasks of its steps, in case a notice of them was lost. */
const PROBE_SECONDS = 600;

type StepWatcher = Extract<Watcher, { k: 'r' }>;

/** What happens to runs, and to the tasks of their steps. */
export class Runs {
  constructor(private readonly engine: LinkEngine) {
    engine.notifiers.r = ({ to, run, step }, { ok, reason, result }) =>
      engine.post(to, 'step', { run, step, ok, why: reason, at: engine.now }, result);
    engine.on.step = (place, body, data) => this.endStep(place, body, data);
    engine.on.release = (queue, { task, again }) => this.createTask(queue, task, again);
    engine.on.probe = (queue, body) => this.probe(queue, body);
    engine.on.drop = (queue, body) => this.drop(queue, body);
    engine.onTimer['run'] = (place, id) => this.due(place, id);
  }

  /** After every change of a run: creates the tasks of ready steps, and notes when it is due. */
  settle(run: RunRecord): void {
    for (const step of run.takeReleased()) this.release(run, step, false);
    if (!run.settle(this.engine.now)) return;
    this.setTimer(run);
    this.noteEnd(run);
  }

  start(run: RunRecord): void {
    this.engine.place(run.place).runs.set(run.options.id, run);
    this.setTimer(run);
    this.settle(run);
  }

  /** Runs the failed steps again. Returns how many there are. */
  retry(run: RunRecord): number {
    const steps = run.retry();
    for (const step of steps) this.release(run, step, step.error !== DUPLICATE && step.error !== CONFLICT);
    this.settle(run);
    return steps.length;
  }

  /** Returns the steps whose tasks may be under way. */
  cancel(run: RunRecord, reason: string): StepRecord[] {
    run.cancel(reason, this.engine.now);
    for (const step of run.steps.values()) if (step.state === 'ready') this.post(run, step, 'unclaimed');
    this.noteEnd(run);
    this.engine.work();
    this.setTimer(run);
    return [...run.steps.values()].filter(({ state }) => state === 'ready');
  }

  /** Also the archived tasks of its steps. */
  delete(run: RunRecord): void {
    const place = this.engine.place(run.place);
    place.runs.delete(run.options.id);
    place.timers.delete(timerOf(run));
    for (const step of run.steps.values()) {
      if (step.state !== 'succeeded' && step.readyAt !== undefined) this.post(run, step, 'archived');
    }
  }

  find(place: string, id: string): RunRecord | undefined {
    return this.engine.find(place)?.runs.get(id);
  }

  private post(run: RunRecord, step: StepRecord, what: Bodies['drop']['what']): void {
    const { queue, id } = step.request.message;
    this.engine.post(wellFormed(queue), 'drop', { id: wellFormed(id), w: watcherOf(run, step), what });
  }

  private noteEnd({ place, options, state, steps, failed, startedAt, endedAt = startedAt }: RunRecord): void {
    if (state === 'running') return;
    const { id, name } = options;
    this.engine.note({ kind: 'run', queue: place, id, name, state, steps: steps.size, failed, startedAt, endedAt });
  }

  private setTimer(run: RunRecord): void {
    const probeAt = floorSeconds(this.engine.now) + PROBE_SECONDS;
    const at =
      run.endedAt === undefined
        ? Math.min(run.deadline ?? Infinity, probeAt)
        : floorSeconds(run.endedAt) + run.options.retention;
    this.engine.place(run.place).timers.set(timerOf(run), at);
  }

  private due(place: string, id: string): void {
    const run = this.find(place, id);
    if (!run) return;
    if (run.endedAt !== undefined) return this.delete(run);
    if (run.deadline !== undefined && run.deadline * 1000 <= this.engine.now) return void this.cancel(run, LATE);
    for (const step of run.steps.values()) {
      if (step.state !== 'ready') continue;
      const w = watcherOf(run, step);
      this.engine.post(wellFormed(step.request.message.queue), 'probe', { id: taskIdOfStep(w.run, w.step), w });
    }
    this.setTimer(run);
  }

  private release(run: RunRecord, step: StepRecord, again: boolean): void {
    const { now } = this.engine;
    const { request } = step;
    step.readyAt = now;
    const earliest = Math.max(request.processAt ?? 0, step.delay > 0 ? ceilSeconds(now + step.delay) : 0);
    const processAt = earliest * 1000 > now ? earliest : undefined;
    const task = { request: { ...request, processAt }, watchers: [watcherOf(run, step), ...watchersOfMark(step.mark)] };
    this.engine.post(wellFormed(request.message.queue), 'release', { task, again });
  }

  private createTask(queue: string, task: Bodies['release']['task'], again: boolean): void {
    const id = wellFormed(task.request.message.id);
    const store = this.engine.store(queue);
    store.listed = true;
    const record = store.tasks.get(id);
    const isOurs = task.watchers.every((watcher) => this.isWatching(queue, id, watcher));
    if (again && record) return this.runAgain(queue, id, record, task.watchers);
    const status = isOurs && !again ? 'enqueued' : this.engine.create(queue, task);
    if (status === 'enqueued') return;
    const reason = status === 'duplicate' ? DUPLICATE : CONFLICT;
    const ended = { place: queue, id, ok: false, reason, result: undefined };
    for (const watcher of task.watchers) if (watcher.k === 'r') this.engine.notify(watcher, ended);
  }

  /** It may be on its way already: then only its end is watched. */
  private runAgain(queue: string, id: string, record: TaskRecord, watchers: readonly Watcher[]): void {
    const store = this.engine.store(queue);
    if (store.archived.delete(id)) store.addPending(id, record, this.engine.now);
    for (const w of watchers) if (w.k === 'r') this.probe(queue, { id, w });
  }

  private endStep(place: string, { run: id, step, ok, why, at }: Bodies['step'], data: Buffer): void {
    const run = this.find(place, id);
    if (!run) return;
    const error = run.state === 'cancelled' && why === DELETED ? undefined : why;
    run.end(step, ok, error, data.length > 0 ? Buffer.from(data) : undefined, at);
    this.settle(run);
  }

  private probe(queue: string, { id, w }: Bodies['probe']): void {
    const record = this.engine.store(queue).tasks.get(id);
    if (!record) return this.engine.notify(w, { place: queue, id, ok: false, reason: DELETED, result: undefined });
    this.engine.on.watch?.(queue, { id, w }, Buffer.alloc(0));
    const watched = this.engine.find(queue)?.links.get(id);
    if (watched && record.state !== 'archived') watched.notified = false;
  }

  private drop(queue: string, { id, w, what }: Bodies['drop']): void {
    const watched = this.engine.find(queue)?.links.get(id);
    const entry = [...(watched?.watchers ?? [])].find(([, watcher]) => isSame(watcher, w));
    if (!watched || !entry) return;
    if (what !== 'unclaimed') watched.watchers.delete(entry[0]);
    if (deleteTask(this.engine.store(queue), id, what, this.engine.now)) this.engine.ended(queue, id, false, DELETED);
    else if (watched.watchers.size === 0) this.engine.place(queue).links.delete(id);
  }

  private isWatching(queue: string, id: string, watcher: Watcher): boolean {
    const known = this.engine.watchersOf(queue, id) ?? [];
    return known.some((other) => isSame(other, watcher));
  }
}

const isSame = (one: Watcher, other: Watcher): boolean => JSON.stringify(one) === JSON.stringify(other);

const timerOf = (run: RunRecord): string => `run ${run.options.id}`;

const watcherOf = (run: RunRecord, step: StepRecord): StepWatcher => ({
  k: 'r',
  to: run.place,
  run: run.options.id,
  step: step.name,
});

const DELETABLE = { unclaimed: ['pending', 'scheduled', 'retry'], archived: ['archived'] } as const;

function deleteTask(store: QueueStore, id: string, what: Bodies['drop']['what'], now: number): boolean {
  const record = store.tasks.get(id);
  const state = DELETABLE[what].find((one) => one === record?.state);
  if (!record || !state || (what === 'unclaimed' && isBeingUndone(record))) return false;
  if (state === 'pending') store.pending.remove(id);
  else sortedSetOf(store, { state }).delete(id);
  store.tasks.delete(id);
  if (record.uniqueKey !== undefined) store.locks.release(record.uniqueKey, id, now);
  return true;
}
