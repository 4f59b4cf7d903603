import { types } from 'node:util';
import type { Jsonify } from './jsonify.js';

/**
 * Encodes and decodes payloads. The default is {@link jsonCodec}; a client and a task definition
 * can set another. `Keeps` says for the compiler which types it brings back as they were, beside what
 * JSON keeps, such as `Date | Map<unknown, unknown>`; see {@link Decoded}. Default: all.
 */
export interface PayloadCodec<Keeps = unknown> {
  /** Never set: it only carries the types. */
  readonly __keeps?: Keeps;
  /**
   * The bytes to store. `undefined` is asynq's nil payload, which differs from an empty one only in
   * the lock of a unique task. The bytes must not change afterwards. What it throws is the cause of
   * an InvalidTaskError.
   */
  encode(value: unknown): Uint8Array | undefined;
  /**
   * The value a handler gets. `bytes` is empty for a nil payload. What it throws archives the task.
   */
  decode(bytes: Buffer): unknown;
}

/**
 * What handlers receive of a payload `P` with this codec: `defineTask<P, void, Decoded<P, typeof codec>>('x', { codec })`.
 */
export type Decoded<P, Codec> =
  Codec extends PayloadCodec<infer Keeps> ? (unknown extends Keeps ? P : Jsonify<P, Keeps>) : P;

/**
 * JSON; bytes stay as they are. An empty payload decodes to `undefined`, and `null` is JSON `null`.
 */
export const jsonCodec = {
  encode(value: unknown): Buffer | undefined {
    const encoded = encodeJson(value);
    return typeof encoded === 'string' ? Buffer.from(encoded) : encoded;
  },
  decode(bytes: Buffer): unknown {
    return decodeJson(bytes);
  },
} satisfies PayloadCodec;

/** As {@link jsonCodec}, but JSON is still text. */
export function encodeJson(value: unknown): string | Buffer | undefined {
  if (value === undefined) return undefined;
  return copyOfBytes(value) ?? stringify(value);
}

/** As {@link jsonCodec}, also of text. @throws SyntaxError */
export const decodeJson = (encoded: string | Buffer): unknown =>
  encoded.length === 0 ? undefined : parse(typeof encoded === 'string' ? encoded : encoded.toString());

/** The value of a stored result: servers store results as JSON, and bytes, which stay bytes, as they are. */
export function decodeResult(stored: string | Buffer | undefined): unknown {
  if (stored === undefined) return undefined;
  try {
    return decodeJson(stored);
  } catch {
    return Buffer.from(stored as string);
  }
}

/**
 * Only bytes, in both directions: for images, protobuf and the like. Other values (but `undefined`)
 * are refused.
 */
export const bytesCodec = {
  encode(value: unknown): Buffer | undefined {
    if (value === undefined) return undefined;
    const bytes = copyOfBytes(value);
    if (bytes) return bytes;
    throw new TypeError(`a value of type ${typeof value} is not bytes; give a Buffer or Uint8Array`);
  },
  decode(bytes: Buffer): Buffer {
    return bytes;
  },
} satisfies PayloadCodec;

/** Node quotes a part of the text: `Unexpected token 'x', ..."a part"... is not valid JSON`. */
const EXCERPT = /, (\.{3})?"[^]*$/;

/**
 * Parses JSON. The error is stored and logged, so it quotes nothing of the text, which may be
 * secret.
 *
 * @throws SyntaxError
 */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as SyntaxError;
    throw new SyntaxError(message.replace(EXCERPT, ' is not valid JSON'));
  }
}

/** A copy, as the owner of a buffer may reuse it. `undefined` if the value is not bytes. */
function copyOfBytes(value: unknown): Buffer | undefined {
  if (ArrayBuffer.isView(value))
    return Buffer.copyBytesFrom(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  if (types.isAnyArrayBuffer(value)) return Buffer.copyBytesFrom(new Uint8Array(value));
  return undefined;
}

function stringify(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new TypeError(explainFailure(value) ?? String(error), { cause: error });
  }
  if (text === '{}' && types.isPromise(value)) throw new TypeError('a promise has no JSON form; await it first');
  if (text !== undefined) return text;
  const what = typeof value === 'object' ? 'an object whose toJSON() returns nothing' : `a ${typeof value}`;
  throw new TypeError(`${what} has no JSON form; give plain data, or undefined for no payload`);
}

/** Finds the BigInt or the circle that made JSON.stringify fail. */
function explainFailure(root: unknown): string | undefined {
  const ancestors: object[] = [];
  const search = (value: unknown, path: string): string | undefined => {
    if (typeof value === 'bigint')
      return `${path} is a BigInt, which JSON cannot hold; convert it to a string or a number`;
    if (typeof value !== 'object' || value === null) return undefined;
    if (ancestors.includes(value))
      return `${path} refers back to an object that holds it; give plain data without circles`;
    ancestors.push(value);
    for (const [key, part] of Object.entries(value)) {
      const found = search(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
      if (found) return found;
    }
    ancestors.pop();
    return undefined;
  };
  return search(root, '$');
}
