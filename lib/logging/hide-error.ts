import type { AsynqEventMap, AsynqEventName } from '../events/events.js';
import { RedactedError } from '../redaction/redacted-error.js';
import type { Redactor } from '../redaction/redactor.js';

interface Ref {
  readonly type: string;
  readonly queue: string;
}

/** Where events have an error, and the tasks they are about. */
interface Failing {
  readonly error?: unknown;
  readonly task?: Partial<Ref>;
  readonly entry?: Ref;
  readonly queue?: string;
  readonly types?: readonly string[];
}

const keyOf = (name: AsynqEventName): 'error' | 'reason' => (name === 'handlerStuck' ? 'reason' : 'error');

/** The event for the log: an error that a redaction rule of its tasks hides is replaced. */
export function hideError<E extends AsynqEventName>(
  name: E,
  event: AsynqEventMap[E],
  redactor: Redactor,
): AsynqEventMap[E] {
  const key = keyOf(name);
  const thrown = (event as Readonly<Record<string, unknown>>)[key];
  if (thrown === undefined || !tasksOf(event as Failing).some((task) => redactor.hidesErrors(task))) return event;
  return { ...event, [key]: new RedactedError(thrown) };
}

function tasksOf({ task, entry, types = [], queue = '' }: Failing): Ref[] {
  const tasks = types.map((type) => ({ type, queue }));
  if (task?.type !== undefined && task.queue !== undefined) tasks.push({ type: task.type, queue: task.queue });
  if (entry) tasks.push(entry);
  return tasks;
}
