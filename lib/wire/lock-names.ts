import { createHash } from 'node:crypto';

/** What a lock compares: `last` is `key`, and only says which task is the last. */
export const LOCK_KINDS = ['key', 'last', 'fields'] as const;
export type LockKind = (typeof LOCK_KINDS)[number];

/** The parts of the name of a lock. */
export interface LockName {
  readonly type: string;
  readonly by: 'payload' | LockKind;
  /** A hash of the payload; a key, or `#` and its hash when it is long; names of fields and a hash of their values. */
  readonly value: string;
}

/** Texts that are longer are hashed: a key of Redis is compared and sent with every call. */
const LONG = 200;
/** Of asynq: the type, a colon, and the hash of the payload, which is empty for none. */
const OF_GO = /^(.+):([\da-f]{32}|)$/s;
/** Ours ends with a word, so that it is none of asynq's, and has no colon in its text, so that the type is all before it. */
const OURS = /^(.+):([^:]*):(key|last|fields)$/s;

/**
 * The name of a lock of ours, without the prefix of its queue: no two types, kinds and texts have the same, nor has asynq one of them.
 *
 * @param texts a key, or names of fields and a hash
 */
export function lockName(type: string, kind: LockKind, texts: readonly string[]): string {
  const text =
    texts.length === 1 ? escapeText(texts[0]!, ESCAPED) : texts.map((one) => escapeText(one, LISTED)).join(',');
  return `${type}:${text.length > LONG ? `%#${sha256(text)}` : text}:${kind}`;
}

/** @returns `undefined` for a name that neither asynq nor this library makes */
export function readLockName(name: string): LockName | undefined {
  const ours = OURS.exec(name);
  if (ours) return { type: ours[1]!, by: ours[3] as LockKind, value: unescapeText(ours[2]!) };
  const go = OF_GO.exec(name);
  return go ? { type: go[1]!, by: 'payload', value: go[2]! } : undefined;
}

const ESCAPED = /[%:]/g;
const LISTED = /[%:,]/g;

/** Most keys have none of the signs, and to see that by `search` is cheaper. */
const escapeText = (text: string, signs: RegExp): string =>
  text.search(signs) === -1 ? text : text.replace(signs, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

const unescapeText = (text: string): string =>
  text.startsWith('%#')
    ? text.slice(1)
    : text.replace(/%(25|3A|2C)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
