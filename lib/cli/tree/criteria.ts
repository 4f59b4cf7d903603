import { InvalidArgumentError, Option } from 'commander';
import type { FieldValue, TaskCriteria } from '../../inspector/criteria.js';
import { duration } from './values.js';

/** The flags that say which tasks are meant. */
export interface CriteriaFlags {
  readonly type?: string;
  readonly id?: string;
  readonly payload?: string;
  readonly field?: Readonly<Record<string, FieldValue>>;
  readonly error?: string;
  /** Milliseconds. */
  readonly olderThan?: number;
}

/** @param purpose of the flags, for their help: `search`, `only` */
export const criteriaOptions = (purpose: string): Option[] => [
  new Option('--type <prefix>', `${purpose}: start of the type`),
  new Option('--id <prefix>', `${purpose}: start of the id`),
  new Option('--payload <text>', `${purpose}: text in the payload`).conflicts('field'),
  new Option('--field <path=value>', `${purpose}: a field of the JSON payload; may be repeated`).argParser(field),
  new Option('--error <text>', `${purpose}: text in the last error`),
  new Option('--older-than <duration>', `${purpose}: in this state for so long at least`).argParser(duration),
];

/** What is not given is left out. */
export function criteriaOf({ type, id, payload, field: fields, error, olderThan }: CriteriaFlags): TaskCriteria {
  const all = { type, id, payload: payload ?? fields, error, olderThan };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** In words, as the flags were given; empty without any. */
export const criteriaText = (flags: CriteriaFlags): string =>
  Object.keys(criteriaOf(flags)).length === 0 ? '' : ' that match';

/** `order.id=17` is the number, `order.id="17"` the text; what is no JSON is a text. */
function field(text: string, before: CriteriaFlags['field'] = {}): Record<string, FieldValue> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be a path and a value, as order.id=17.');
  return { ...before, [text.slice(0, at)]: valueOf(text.slice(at + 1)) };
}

function valueOf(text: string): FieldValue {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? text : (value as FieldValue);
  } catch {
    return text;
  }
}
