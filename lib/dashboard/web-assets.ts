import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface WebAsset {
  readonly body: Buffer;
  /** Media type, with the character set of text. */
  readonly type: string;
  /** A strong validator, in quotes. */
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};

/**
 * A file of the page by name: `index.html`, or `assets/…`; undefined if there is none. This module
 * reads what `npm run build:web` made. In the package, scripts/embed/web.mjs replaces it with a
 * module that contains the files, because a bundle has no `import.meta.url`.
 */
export function webAsset(name: string): WebAsset | undefined {
  const type = TYPES[/^(?:assets\/)?[\w-]+\.(\w+)$/.exec(name)?.[1] ?? ''];
  if (type === undefined) return undefined;
  try {
    const body = readFileSync(new URL(`../../dist/dashboard/web/${name}`, import.meta.url));
    return { body, type, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
