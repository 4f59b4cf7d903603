// The last step of the build: dist/dashboard/web-assets.js with every file of the console's page (see lib/dashboard/web-assets.ts).
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const web = join(root, 'dist', 'dashboard', 'web');
const target = join(root, 'dist', 'dashboard', 'web-assets.js');
for (const path of [web, target]) if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`);

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

function describe(path) {
  const body = readFileSync(join(web, path));
  const type = TYPES[extname(path)];
  if (type === undefined) throw new Error(`no media type for ${path}: add it here and in lib/dashboard/web-assets.ts`);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return [path.split(sep).join('/'), { type, etag, base64: body.toString('base64') }];
}

const files = readdirSync(web, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(web.length + 1));

writeFileSync(
  target,
  `const FILES = new Map(${JSON.stringify(files.toSorted().map(describe), null, 2)});

const BODIES = new Map();

export function webAsset(name) {
  const file = FILES.get(name);
  if (file === undefined) return undefined;
  if (!BODIES.has(name)) BODIES.set(name, Buffer.from(file.base64, 'base64'));
  return { body: BODIES.get(name), type: file.type, etag: file.etag };
}
`,
);

// The page's files themselves are not in the package.
copyFileSync(join(web, 'assets', 'licenses.txt'), join(root, 'dist', 'dashboard', 'web-licenses.txt'));
