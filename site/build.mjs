/* Builds the site: the reference from the types, the pages from docs/, then looks at every link of the result. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { copyPages } from './copy-pages.mjs';
import { deadLinks } from './links.mjs';

const here = import.meta.dirname;
const root = join(here, '..');
const run = (program, args, cwd) => promisify(execFile)(program, args, { cwd }).catch(fail);
function fail({ message, stdout = '' }) {
  process.stderr.write(`${stdout}${message}\n`);
  process.exit(1);
}

// The types of Nest and of ioredis are those that the library is built with.
if (!existsSync(join(root, 'node_modules'))) await run('npm', ['ci'], root);

const dist = join(here, 'dist');
rmSync(dist, { recursive: true, force: true });
copyPages();
const bin = (name) => join(here, 'node_modules', name);
await Promise.all([
  run(process.execPath, [bin('typedoc/bin/typedoc')], here),
  run(process.execPath, [bin('vitepress/bin/vitepress.js'), 'build'], here),
]);

cpSync(join(here, 'node_modules/.cache/api'), join(dist, 'api'), { recursive: true });
const dead = deadLinks(dist);
if (dead.length > 0) fail({ message: `dead links:\n${dead.join('\n')}` });
