import type { AwaitedEvent } from '../../broker.js';
import type { StepField, StepNames, StoredSteps } from '../../checkpoints.js';

/*
 * Fields of the hash of a task for the steps of its handler. asynq's own fields have no colon.
 *   `did:<name>`        what was stored of a step
 *   `signal:<name>`     how many signals of this name have come; `signal:<name>#<n>` is the nth
 *   `answer:<name>`     how a task that a step has called has ended
 *   `call:<name>`       until then, of a task in another queue: how it is to be created, or that this was granted; see shared/step-calls.lua
 *   `awaits`            the fields that end its sleep, each behind a NUL
 */
const DID = 'did:';
const SIGNAL = 'signal:';
const ANSWER = 'answer:';

export const checkpointField = (name: string): string => DID + name;

const answerField = (name: string): string => ANSWER + name;

export const awaitedField = (event: AwaitedEvent): string =>
  'answer' in event ? answerField(event.answer) : `${SIGNAL}${event.signal}#${event.n}`;

export function fieldOf(field: StepField): string {
  return 'step' in field ? checkpointField(field.step) : awaitedField(field);
}

/** @param fields of the hash, names and values in turn */
export function readSteps(fields: readonly Buffer[]): StoredSteps {
  const checkpoints = new Map<string, Buffer>();
  const answers = new Map<string, Buffer>();
  const numbered = new Map<string, Map<number, Buffer>>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const field = fields[i]!.toString();
    const value = fields[i + 1]!;
    if (field.startsWith(DID)) checkpoints.set(field.slice(DID.length), value);
    else if (field.startsWith(ANSWER)) answers.set(field.slice(ANSWER.length), value);
    else if (field.startsWith(SIGNAL)) noteSignal(numbered, field.slice(SIGNAL.length), value);
  }
  const signals = new Map<string, Buffer[]>();
  for (const [name, ofName] of numbered) {
    const inOrder = [...ofName].sort(([one], [other]) => one - other);
    signals.set(
      name,
      inOrder.map(([, value]) => value),
    );
  }
  return { checkpoints, signals, answers };
}

/** @param fields the names of all fields of the hash */
export function readNames(fields: readonly string[]): StepNames {
  const behind = (prefix: string): string[] =>
    fields.filter((field) => field.startsWith(prefix)).map((field) => field.slice(prefix.length));
  const signals = new Map<string, number>();
  for (const field of fields) {
    const at = field.startsWith(SIGNAL) ? field.lastIndexOf('#') : -1;
    if (at < 0) continue;
    const name = field.slice(SIGNAL.length, at);
    signals.set(name, (signals.get(name) ?? 0) + 1);
  }
  return { steps: behind(DID), answers: behind(ANSWER), signals };
}

function noteSignal(numbered: Map<string, Map<number, Buffer>>, rest: string, value: Buffer): void {
  const at = rest.lastIndexOf('#');
  if (at < 0) return; // how many there are
  const name = rest.slice(0, at);
  const ofName = numbered.get(name) ?? new Map<number, Buffer>();
  ofName.set(Number(rest.slice(at + 1)), value);
  numbered.set(name, ofName);
}
