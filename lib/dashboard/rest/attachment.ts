import { isUtf8 } from 'node:buffer';
import type { Outgoing } from './responder.js';

/** Bytes for a download. */
export interface Attachment {
  readonly bytes: Buffer;
  /** The name of the file. */
  readonly name: string;
}

const MAX_NAME_LENGTH = 100;

/** A file name of letters, digits and dashes, with an extension that fits the bytes. */
export function nameOf(what: string, bytes: Buffer): string {
  const name = what
    .replaceAll(/[^\w-]+/g, '_')
    .slice(-MAX_NAME_LENGTH)
    .replace(/^[_-]+/, '');
  return `${name || 'bytes'}.${endingOf(bytes)}`;
}

function endingOf(bytes: Buffer): string {
  if (bytes.length === 0 || !isUtf8(bytes)) return 'bin';
  return /^\s*[[{]/.test(bytes.subarray(0, 100).toString('latin1')) ? 'json' : 'txt';
}

/** A browser must store the bytes, and neither show nor run them. */
export const attachment = ({ bytes, name }: Attachment): Pick<Outgoing, 'headers' | 'body'> => ({
  headers: {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${name}"`,
    'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  },
  body: bytes,
});
