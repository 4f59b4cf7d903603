import { type MarkRequest, placeOfMarks, type Watcher } from '../../links.js';
import { wellFormed } from '../queue-store.js';

/** Tells the marks of a type about the end of a task. */
export const watchersOfMark = (mark: MarkRequest | undefined): Watcher[] =>
  mark ? [{ k: 'm', to: placeOfMarks(wellFormed(mark.type)), key: wellFormed(mark.key), ttl: mark.rememberFor }] : [];
