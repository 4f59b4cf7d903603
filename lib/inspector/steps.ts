import type { Broker } from '../broker/broker.js';
import { MAX_PAGE_SIZE } from '../broker/inspection.js';
import { answerNameOf, RECORD, type StepField, type StepValue, UNDO_RECORD } from '../broker/checkpoints.js';
import { InvalidOptionError } from '../errors.js';
import {
  rejectUnknownKeys,
  requireInteger,
  requireNonBlank,
  requireObject,
  requirePositiveInteger,
} from '../validation.js';
import type { HandlerStepInfo, HandlerStepList } from './handler-step.js';
import { requireQueueName } from './known-queue.js';
import { StepOverview, type StepResult } from './step-overview.js';
import { readAnswerRecord, readStepRecord, readUndoRecord, type StepRecord } from './step-record.js';

export interface HandlerStepListOptions {
  /** Steps of a page, 1 to 1,000. Default 1,000. */
  readonly size?: number;
  /** The number of the page, from 1. */
  readonly page?: number;
  /** Results with more bytes are left out. Default 16,384. */
  readonly maxResultSize?: number;
}

type StepsBroker = Pick<Broker, 'checkpoints' | 'clock'>;

const DEFAULT_RESULT_SIZE = 16_384;
const KNOWN: readonly (keyof HandlerStepListOptions)[] = ['size', 'page', 'maxResultSize'];

/** Reads what is stored of one task. */
type Read = (fields: readonly StepField[], most: number) => Promise<(StepValue | undefined)[]>;

/** @throws InvalidOptionError */
export async function listSteps(
  { checkpoints, clock }: StepsBroker,
  queue: string,
  id: string,
  options: HandlerStepListOptions = {},
): Promise<HandlerStepList | undefined> {
  requireQueueName(queue);
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const { offset, size, maxResultSize } = toPage(options);
  const read = reader(checkpoints, queue, id);
  const all = await readAll({ checkpoints, clock }, queue, id, read);
  if (!all) return undefined;
  const page = all.steps.slice(offset, offset + size);
  const results = await readResults(read, all, page, maxResultSize);
  return {
    steps: page.map((record, index) => all.view(record, results[index])),
    total: all.steps.length,
    signals: all.signals(),
    undoing: all.undoing,
  };
}

/** The steps that have begun and not ended, without results. */
export async function listOpenSteps(broker: StepsBroker, queue: string, id: string): Promise<HandlerStepInfo[]> {
  const all = await readAll(broker, queue, id, reader(broker.checkpoints, queue, id));
  return (all?.steps ?? [])
    .map((record) => all!.view(record, undefined))
    .filter(({ state }) => state === 'asleep' || state === 'waiting' || state === 'retrying');
}

const reader =
  (checkpoints: StepsBroker['checkpoints'], queue: string, id: string): Read =>
  (fields, most) =>
    fields.length === 0 ? Promise.resolve([]) : checkpoints.view(queue, id, fields, most);

/** `undefined` when there are neither steps nor signals. */
async function readAll(
  { checkpoints, clock }: StepsBroker,
  queue: string,
  id: string,
  read: Read,
): Promise<StepOverview | undefined> {
  const names = await checkpoints.list(queue, id);
  if (names.steps.length === 0 && names.signals.size === 0) return undefined;
  const { steps, undo } = await readRecords(read, names.steps);
  const answers = await readAnswers(read, steps, new Set(names.answers));
  return new StepOverview({ steps, undo, answers, signals: names.signals, now: clock.now() });
}

/** @throws InvalidOptionError */
function toPage(options: HandlerStepListOptions) {
  requireObject(options, 'the options of steps', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, 'option of steps', InvalidOptionError);
  const { size = MAX_PAGE_SIZE, page = 1, maxResultSize = DEFAULT_RESULT_SIZE } = options;
  requireInteger(size, 'size', InvalidOptionError, { least: 1, most: MAX_PAGE_SIZE });
  requireInteger(maxResultSize, 'maxResultSize', InvalidOptionError, { least: 0 });
  return { size, maxResultSize, offset: size * (requirePositiveInteger(page, 'page', InvalidOptionError) - 1) };
}

/** The steps in their order, without those that were undone before the task was run again. */
async function readRecords(read: Read, names: readonly string[]) {
  const values = await read(
    names.map((step) => ({ step })),
    0,
  );
  const records = names.flatMap((name, index) => {
    const value = name.startsWith(RECORD) ? undefined : values[index];
    return (value && readStepRecord(name, value)) ?? [];
  });
  const life = records.reduce((most, record) => Math.max(most, record.life), 0);
  const steps = records.filter((record) => record.life === life).sort(inOrder);
  return { steps, undo: readUndoRecord(values[names.indexOf(UNDO_RECORD)]) };
}

/** Those that undo come last, in the order in which they began. */
function inOrder(one: StepRecord, other: StepRecord): number {
  const [undoes, otherUndoes] = [one, other].map(({ kind }) => kind === 'undo');
  if (undoes !== otherUndoes) return undoes ? 1 : -1;
  return undoes ? one.at - other.at || other.n - one.n : one.n - other.n;
}

/** How called tasks have ended, by the step that has called them. */
async function readAnswers(read: Read, steps: readonly StepRecord[], names: ReadonlySet<string>) {
  const calls = steps.filter((step) => step.kind === 'call' && names.has(answerNameOf(step.name, step.life)));
  const values = await read(
    calls.map((step) => ({ answer: answerNameOf(step.name, step.life) })),
    0,
  );
  return new Map(calls.map((step, index) => [step, readAnswerRecord(values[index])] as const));
}

async function readResults(
  read: Read,
  all: StepOverview,
  page: readonly StepRecord[],
  most: number,
): Promise<(StepResult | undefined)[]> {
  const places = page.map((record) => all.placeOf(record));
  const wanted = places.filter((place) => place !== undefined);
  const values = await read(wanted, most);
  const found = new Map(wanted.map((place, index) => [place, values[index]] as const));
  return places.map((place, index) => {
    const value = place && found.get(place);
    return value && resultIn(value, place, page[index]!, most);
  });
}

function resultIn(
  { bytes, size }: StepValue,
  place: StepField,
  { name }: StepRecord,
  most: number,
): StepResult | undefined {
  if ('signal' in place) return { size, bytes: size > most ? undefined : bytes };
  const record = 'answer' in place ? readAnswerRecord({ bytes, size }) : readStepRecord(name, { bytes, size });
  return record && { size: record.resultSize, bytes: record.result };
}
