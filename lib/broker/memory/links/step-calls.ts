import type { StepCall } from '../../checkpoints.js';
import type { Watcher } from '../../links.js';
import { stepsOf, wellFormed } from '../queue-store.js';
import type { Bodies } from './bodies.js';
import type { LinkEngine } from './engine.js';
import { newTask } from './new-task.js';
import { DELETED, DUPLICATE } from './texts.js';

type CallWatcher = Extract<Watcher, { k: 's' }>;

/** Tasks that steps of handlers call. */
export class StepCalls {
  constructor(
    private readonly engine: LinkEngine,
    /** As LinksRole.watch: returns `false` when there is no such task. */
    private readonly watch: (place: string, id: string, watcher: Watcher) => boolean,
  ) {
    engine.notifiers.s = (w, { ok, reason, result }) => this.answer(w, ok, reason, result);
    engine.on.call = (queue, body) => this.create(queue, body);
    engine.on.recall = (queue, { id, w }) => this.ask(queue, id, w);
    engine.on.answer = (queue, body, data) => this.arrive(queue, body, data);
  }

  post(place: string, id: string, { answer, queue, id: called, request }: StepCall): void {
    const w: CallWatcher = { k: 's', to: wellFormed(place), id, answer: wellFormed(answer) };
    const to = wellFormed(queue);
    if (!request) return this.engine.post(to, 'recall', { id: wellFormed(called), w });
    this.engine.store(w.to).tasks.get(id)?.steps?.answers.delete(w.answer); // to a task that had the id before
    const task = newTask(request);
    this.engine.post(to, 'call', { task: { ...task, watchers: [...task.watchers, w] }, w });
  }

  private answer({ to, id, answer }: CallWatcher, ok: boolean, why: string, result?: Buffer): void {
    this.engine.post(to, 'answer', { id, answer, ok, why }, result);
  }

  private create(queue: string, { task, w }: Bodies['call']): void {
    this.engine.store(queue).listed = true;
    const status = this.engine.create(queue, task);
    if (status === 'conflict') this.ask(queue, wellFormed(task.request.message.id), w);
    else if (status !== 'enqueued') this.answer(w, false, DUPLICATE);
  }

  private ask(queue: string, id: string, w: CallWatcher): void {
    if (!this.watch(queue, id, w)) this.answer(w, false, DELETED);
  }

  private arrive(queue: string, { id, answer, ok, why }: Bodies['answer'], data: Buffer): void {
    const store = this.engine.store(queue);
    const record = store.tasks.get(id);
    if (!record || record.state === 'completed') return;
    const { answers } = stepsOf(record);
    const before = answers.get(answer);
    if (before && (!ok || before.includes('"ok":true'))) return;
    const head = JSON.stringify(ok ? { ok } : { ok, why });
    answers.set(answer, Buffer.concat([Buffer.from(`${head}\n`), data]));
    store.endSleep(id, record, this.engine.now);
  }
}
