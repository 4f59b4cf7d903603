import type { AsynqEventName, AsynqEvents } from '../events/events.js';
import { type AsynqLogger, printableLogger } from '../logger.js';
import type { Redactor } from '../redaction/redactor.js';
import { CONSOLE } from './console-wording.js';
import { GROUPS, PERIODIC } from './group-wording.js';
import { hideError } from './hide-error.js';
import { LINKS } from './link-wording.js';
import { loopWording, payloadWording, QUEUES, SERVER } from './server-wording.js';
import { TASKS } from './task-wording.js';
import type { Wording } from './wording.js';

/**
 * Logs the events of a connection; nothing else logs about tasks. A task that succeeds is not
 * logged, one that is retried is a warning, and one that is archived an error with its stack. Each
 * message is one line without control characters, whatever names it quotes.
 *
 * @param redactor replaces the errors it hides
 * @returns a function that ends it
 */
export function logEvents(events: AsynqEvents, logger: AsynqLogger, redactor?: Redactor): () => void {
  const wording: Wording = {
    ...CONSOLE,
    ...TASKS,
    ...QUEUES,
    ...GROUPS,
    ...PERIODIC,
    ...LINKS,
    ...SERVER,
    ...loopWording(),
    ...payloadWording(),
  };
  const safe = printableLogger(logger);
  const names = Object.keys(wording) as AsynqEventName[];
  const ends = names.map((event) => subscribe(events, event, wording, safe, redactor));
  return () => ends.forEach((end) => end());
}

function subscribe<E extends AsynqEventName>(
  events: AsynqEvents,
  event: E,
  wording: Wording,
  logger: AsynqLogger,
  redactor: Redactor | undefined,
): () => void {
  const log = wording[event]!;
  if (!redactor) return events.on(event, (payload) => log(payload, logger), 'troubles');
  return events.on(event, (payload) => log(hideError(event, payload, redactor), logger), 'troubles');
}
