import { types } from 'node:util';

/** How payloads become bytes and back. The default is {@link jsonCodec}; a client and a task definition can name another. */
export interface PayloadCodec {
  /**
   * The bytes to store. `undefined` is asynq's nil payload, which only the lock of a unique task tells from an empty one.
   * The bytes must not change afterwards. What it throws becomes the cause of an InvalidTaskError.
   */
  encode(value: unknown): Uint8Array | undefined;
  /** The value a handler gets. `bytes` is empty for a nil payload. What it throws archives the task. */
  decode(bytes: Buffer): unknown;
}

/** JSON, but bytes pass as they are. An empty payload decodes to `undefined`; `null` travels as JSON `null`. */
export const jsonCodec = {
  encode(value: unknown): Buffer | undefined {
    if (value === undefined) return undefined;
    return copyOfBytes(value) ?? Buffer.from(stringify(value));
  },
  decode(bytes: Buffer): unknown {
    return bytes.length === 0 ? undefined : parse(bytes.toString());
  },
} satisfies PayloadCodec;

/** Bytes only, both ways: for images, protobuf and the like. Anything but bytes (and `undefined`) is refused. */
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

/** Node quotes some of the text: `Unexpected token 'x', ..."some of it"... is not valid JSON`. */
const EXCERPT = /, (\.{3})?"[^]*$/;

/** The error is stored and logged: it says what is wrong, but quotes nothing, as that may be a secret. @throws SyntaxError */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as SyntaxError;
    throw new SyntaxError(message.replace(EXCERPT, ' is not valid JSON'));
  }
}

/** A copy, so that a buffer its owner uses again is stored as it was at the call. `undefined` when the value is not bytes. */
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
  if (text !== undefined) return text;
  const what = typeof value === 'object' ? 'an object whose toJSON() answers nothing' : `a ${typeof value}`;
  throw new TypeError(`${what} has no JSON form; give plain data, or undefined for no payload`);
}

/** Where the BigInt or the circle is that JSON.stringify stumbled on; looked for only after it has. */
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
