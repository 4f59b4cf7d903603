import { type LinkedRequest, type MarkRequest, placeOfMarks, type Wait, type Watcher } from '../../links.js';
import { wellFormed } from '../queue-store.js';
import type { NewTask } from './bodies.js';
import type { Edge, WaitRecord } from './place.js';

/** A request as links create it: with what it waits for and who watches it. */
export const newTask = (request: LinkedRequest): NewTask => ({
  request,
  watchers: watchersOfMark(request.mark),
  ...(request.wait && { after: waitRecord(request.wait, request.processAt) }),
});

/** Notifies the marks of a type of the end of a task. */
export const watchersOfMark = (mark: MarkRequest | undefined): Watcher[] =>
  mark ? [{ k: 'm', to: placeOfMarks(wellFormed(mark.type)), key: wellFormed(mark.key), ttl: mark.rememberFor }] : [];

const waitRecord = (wait: Wait, processAt: number | undefined): WaitRecord => ({
  edges: wait.prerequisites.map((one): Edge =>
    'id' in one
      ? { from: wellFormed(one.queue), of: wellFormed(one.id), state: 'waiting' }
      : { from: placeOfMarks(wellFormed(one.type)), of: wellFormed(one.key), state: 'waiting' },
  ),
  onFailure: wait.onFailure,
  onTimeout: wait.onTimeout,
  deadline: wait.deadline,
  processAt,
});
