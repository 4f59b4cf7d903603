import { describe, nearest, rejectUnknownKeys } from '../../validation.js';
import { BadRequest } from './api-error.js';

type TypeName = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null';

/**
 * The subset of JSON Schema (2020-12) that describes bodies and replies: checked here, and
 * published in the OpenAPI document.
 */
export interface Schema {
  readonly type?: TypeName | readonly TypeName[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly enum?: readonly (string | null)[];
  readonly minimum?: number;
  readonly format?: string;
  readonly anyOf?: readonly Schema[];
  readonly $ref?: string;
}

export const text = (description?: string): Schema => ({ type: 'string', description });
export const count = (description?: string): Schema => ({ type: 'integer', description });
export const amount = (description?: string): Schema => ({ type: 'number', description });
export const flag = (description?: string): Schema => ({ type: 'boolean', description });
export const anything = (description?: string): Schema => ({ description });
export const time = (description?: string): Schema => ({ type: 'string', format: 'date-time', description });
export const orNull = (schema: Schema): Schema =>
  schema.type === undefined
    ? { anyOf: [schema, { type: 'null' }] }
    : { ...schema, type: [schema.type as TypeName, 'null'], ...(schema.enum && { enum: [...schema.enum, null] }) };
export const listOf = (items: Schema): Schema => ({ type: 'array', items });
export const mapOf = (values: Schema): Schema => ({ type: 'object', additionalProperties: values });
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const oneOf = (values: readonly string[], description?: string): Schema => ({
  type: 'string',
  enum: values,
  description,
});

/** An object with exactly these properties; required unless named in `optional`. */
export const shape = (properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

/** An object with any of these properties and no others: for bodies. */
export const choice = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** A lone surrogate has no UTF-8 form and would be stored as U+FFFD. */
const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

function typeOf(value: unknown): TypeName {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as TypeName;
}

function fitsType(value: unknown, types: readonly TypeName[]): boolean {
  const actual = typeOf(value);
  return types.includes(actual) || (actual === 'integer' && types.includes('number'));
}

/**
 * @param name the name of the value, for messages
 * @throws BadRequest naming what does not fit
 */
export function checkValue(value: unknown, schema: Schema, name: string): void {
  const types = schema.type === undefined ? [] : ([schema.type].flat() as TypeName[]);
  if (types.length > 0 && !fitsType(value, types)) {
    throw new BadRequest(`${name} must be of type ${types.join(' or ')}, not ${describe(value)}`);
  }
  if (typeof value === 'string' && !isWellFormed(value)) {
    throw new BadRequest(
      `${name} has half of a surrogate pair, which cannot be stored as text; escape or leave it out`,
    );
  }
  if (schema.enum && !schema.enum.includes(value as string)) throw notAmong(value, schema.enum, name);
  if (schema.minimum !== undefined && (value as number) < schema.minimum) {
    throw new BadRequest(`${name} must be at least ${schema.minimum}, not ${describe(value)}`);
  }
  if (Array.isArray(value)) checkItems(value, schema, name);
  else if (typeof value === 'object' && value !== null) checkObject(value, schema, name);
}

function notAmong(value: unknown, known: readonly (string | null)[], name: string): BadRequest {
  const names = known.filter((item) => item !== null);
  const near = typeof value === 'string' ? nearest(value, names) : undefined;
  return new BadRequest(
    `${name} is ${describe(value)}; ${near ? `did you mean "${near}"?` : `known are ${names.join(', ')}`}`,
  );
}

const lacks = (name: string, field: string, description: string | undefined): string =>
  `${name} needs the field "${field}"${description === undefined ? '' : `: ${description}`}`;

function checkItems(value: readonly unknown[], { items, maxItems }: Schema, name: string): void {
  if (maxItems !== undefined && value.length > maxItems) {
    throw new BadRequest(`${name} has ${value.length} items; it may have ${maxItems}`);
  }
  if (items) for (const [index, item] of value.entries()) checkValue(item, items, `${name}[${index}]`);
}

function checkObject(value: object, schema: Schema, name: string): void {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (additionalProperties === false) {
    rejectUnknownKeys(value, Object.keys(properties), `field of ${name}`, BadRequest);
  }
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) throw new BadRequest(lacks(name, missing, properties[missing]?.description));
  for (const [key, part] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const inner = known ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (inner) checkValue(part, inner, `${name}.${key}`);
  }
}
