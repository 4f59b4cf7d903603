import { isUtf8 } from 'node:buffer';
import { InvalidOptionError } from '../../errors.js';
import { requireFunction, requireNonBlank, requireObject } from '../../validation.js';
import { parseExactly, plainJson, plainValue } from './plain-value.js';

/** The task whose bytes are decoded. */
export interface DecodedTask {
  readonly type: string;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the bytes are the payload or the result. */
  readonly part: 'payload' | 'result';
}

/** Makes payloads and results readable that are not JSON: msgpack, protobuf … */
export interface PayloadDecoder {
  /** Shown beside the decoded value. */
  readonly name: string;
  /**
   * The decoded value; `undefined` (or an error) if the decoder does not know the bytes: then the
   * next one is tried. The value is shown as JSON, with maps as objects, bytes as base64 and
   * BigInts as text.
   */
  decode(bytes: Buffer, task: DecodedTask): unknown;
}

/** A value and its decoder. */
export interface Decoded {
  readonly decoder: PayloadDecoder;
  readonly value: unknown;
}

const jsonDecoder: PayloadDecoder = {
  name: 'json',
  decode: (bytes) => (isUtf8(bytes) ? parseExactly(bytes.toString()) : undefined),
};

/** Whether it is the built-in JSON decoder. */
export const isOwnJson = (decoder: PayloadDecoder): boolean => decoder === jsonDecoder;

/** @throws InvalidOptionError */
export function checkDecoders(decoders: unknown): readonly PayloadDecoder[] {
  if (!Array.isArray(decoders)) throw new InvalidOptionError('AsynqDashboardModule option decoders must be an array');
  for (const [index, decoder] of decoders.entries()) {
    const what = `AsynqDashboardModule option decoders[${index}]`;
    const { name, decode } = requireObject(decoder, what, InvalidOptionError) as Partial<PayloadDecoder>;
    requireNonBlank(name, `${what}.name`, InvalidOptionError);
    requireFunction(decode, `${what}.decode`, InvalidOptionError);
  }
  // A decoder named `json` replaces the built-in one.
  return decoders.some(({ name }: PayloadDecoder) => name === 'json') ? decoders : [jsonDecoder, ...decoders];
}

/** The value of the first decoder that knows the bytes. */
export function decode(
  decoders: readonly PayloadDecoder[],
  bytes: Buffer | undefined,
  task: DecodedTask,
): Decoded | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined;
  for (const decoder of decoders) {
    const value = attempt(decoder, bytes, task);
    if (value !== undefined) return { decoder, value };
  }
  return undefined;
}

function attempt(decoder: PayloadDecoder, bytes: Buffer, task: DecodedTask): unknown {
  try {
    const value = decoder.decode(bytes, task);
    return isOwnJson(decoder) ? plainJson(value) : plainValue(value);
  } catch {
    return undefined; // not its format
  }
}
