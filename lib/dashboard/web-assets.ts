import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface WebAsset {
  readonly body: Buffer;
  /** Its media type, with the character set where it is text. */
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
 * A file of the console's page by its name: `index.html`, or `assets/…` as index.html has it. Undefined when there
 * is no such file. Here they are read from what `npm run build:web` made; in the package, scripts/embed/web.mjs puts a module
 * that contains them in place of this one, as a bundle knows no `import.meta.url`.
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
