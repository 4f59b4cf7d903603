import { createHash } from 'node:crypto';
import type { PayloadCodec } from '../../task/codec.js';
import { bytesCodec, jsonCodec } from '../../task/codec.js';
import { BadRequest } from './api-error.js';
import { anything, type Schema, text } from './schema.js';

/** A body has a payload in one of these three fields. */
export const PAYLOAD_FIELDS: Readonly<Record<string, Schema>> = {
  payload: anything('JSON, encoded as the application encodes payloads; at most one of these three'),
  payload_text: text('UTF-8'),
  payload_base64: text('bytes'),
};

/** The hash that a task shows and an edit sends back. */
export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

export interface PayloadBody {
  readonly payload?: unknown;
  readonly payload_text?: string;
  readonly payload_base64?: string;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * The value to store and its codec; `undefined` if the body has no payload.
 *
 * @throws BadRequest
 */
export function readPayload(
  body: PayloadBody,
  codec: PayloadCodec = jsonCodec,
): { readonly value: unknown; readonly codec: PayloadCodec } | undefined {
  const given = Object.keys(PAYLOAD_FIELDS).filter((name) => Object.hasOwn(body, name));
  if (given.length > 1) throw new BadRequest(`give one of ${given.join(', ')}, not all of them`);
  if (body.payload_text !== undefined) return { value: Buffer.from(body.payload_text), codec: bytesCodec };
  if (body.payload_base64 !== undefined) return { value: fromBase64(body.payload_base64), codec: bytesCodec };
  if (given.length === 0) return undefined;
  refuseRounded(body.payload);
  return { value: body.payload, codec };
}

/**
 * Refuses numbers that the application's parser may have rounded: the last digits of a long id are
 * lost, and 1e400 would be stored as null. A loop, because bodies can be nested deeper than the
 * stack allows.
 *
 * @throws BadRequest
 */
function refuseRounded(payload: unknown): void {
  const left = [payload];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) left.push(part);
    if (typeof value !== 'number') continue;
    if (Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))) continue;
    throw new BadRequest(
      'the payload has a number beyond 2^53, which would lose digits; send the JSON as payload_text instead',
    );
  }
}

/**
 * The bytes to store; `undefined` for none.
 *
 * @throws BadRequest when the codec refuses the value
 */
export function encodePayload({ value, codec }: { value: unknown; codec: PayloadCodec }): Uint8Array | undefined {
  try {
    return codec.encode(value);
  } catch (error) {
    throw new BadRequest(`the payload cannot be encoded: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function fromBase64(encoded: string): Buffer {
  if (BASE64.test(encoded)) return Buffer.from(encoded, 'base64');
  throw new BadRequest('payload_base64 is not base64');
}
