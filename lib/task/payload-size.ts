import { InvalidOptionError, InvalidTaskError } from '../errors.js';
import { requireInteger } from '../validation.js';

/** Redis handles a payload at each step of its task, and blocks all other calls meanwhile. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 5 * 1024 * 1024;
/** The longest value that Redis accepts (proto-max-bulk-len). */
const MAX_VALUE_BYTES = 512 * 1024 * 1024;

/** @throws InvalidOptionError */
export const checkMaxPayloadSize = (value: unknown = DEFAULT_MAX_PAYLOAD_BYTES, name = 'maxPayloadSize'): number =>
  requireInteger(value, `${name} (bytes)`, InvalidOptionError, { least: 1, most: MAX_VALUE_BYTES });

/** UTF-8 has no more bytes for a character of JavaScript. */
const MAX_BYTES_PER_CHARACTER = 3;

/**
 * @param bytes or text, which is stored as UTF-8
 * @param what what the bytes are, as in `payload of task "x"`
 * @throws InvalidTaskError when there are more than `most`
 */
export function requirePayloadSize<T extends Uint8Array | string | undefined>(bytes: T, most: number, what: string): T {
  if (bytes === undefined || bytes.length * MAX_BYTES_PER_CHARACTER <= most) return bytes;
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
  if (size <= most) return bytes;
  throw new InvalidTaskError(
    `${what} has ${size} bytes; the most is ${most} (maxPayloadSize). ` +
      'Store large data elsewhere and pass a reference, or raise maxPayloadSize',
  );
}
