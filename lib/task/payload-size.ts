import { InvalidOptionError, InvalidTaskError } from '../errors.js';
import { requireInteger } from '../validation.js';

/** Redis moves a payload with every step of its task, and holds all others up for it. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 5 * 1024 * 1024;
/** Redis takes no longer value (proto-max-bulk-len). */
const LARGEST_BYTES = 512 * 1024 * 1024;

/** @throws InvalidOptionError */
export const checkMaxPayloadSize = (value: unknown = DEFAULT_MAX_PAYLOAD_BYTES, name = 'maxPayloadSize'): number =>
  requireInteger(value, `${name} (bytes)`, InvalidOptionError, { least: 1, most: LARGEST_BYTES });

/**
 * @param what whose bytes they are, as in `payload of task "x"`
 * @throws InvalidTaskError when there are more than `most`
 */
export function requirePayloadSize<T extends Uint8Array | undefined>(bytes: T, most: number, what: string): T {
  if (bytes === undefined || bytes.length <= most) return bytes;
  throw new InvalidTaskError(
    `${what} has ${bytes.length} bytes; the most is ${most} (maxPayloadSize). ` +
      'Store large data elsewhere and pass on where it is, or raise maxPayloadSize',
  );
}
