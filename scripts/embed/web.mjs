import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const web = join(root, 'dist', 'dashboard', 'web');

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** The text of the module that replaces lib/dashboard/web-assets.ts in a build: it contains the console's page. */
export function webModule() {
  if (!existsSync(web)) throw new Error(`${web} is missing: run npm run build:web`);
  const files = readdirSync(web, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(web.length + 1));
  return `const FILES = new Map(${JSON.stringify(files.toSorted().map(describe), null, 4)});
const BODIES = new Map();
export function webAsset(name) {
    const file = FILES.get(name);
    if (file === undefined)
        return undefined;
    if (!BODIES.has(name))
        BODIES.set(name, Buffer.from(file.base64, 'base64'));
    return { body: BODIES.get(name), type: file.type, etag: file.etag };
}
`;
}

/**
 * The package contains the licences of what is bundled, but not the page's files themselves. Only the page is bundled: the rest of `dist` is
 * compiled from `lib` and has no code of others.
 */
export function keepLicenses() {
  copyFileSync(join(web, 'assets', 'licenses.txt'), join(root, 'THIRD-PARTY-NOTICES.txt'));
}

function describe(path) {
  const body = readFileSync(join(web, path));
  const type = TYPES[extname(path)];
  if (type === undefined) throw new Error(`no media type for ${path}: add it here and in lib/dashboard/web-assets.ts`);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return [path.split(sep).join('/'), { type, etag, base64: body.toString('base64') }];
}
