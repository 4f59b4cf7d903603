import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The sources of the programs. */
const SOURCES = [
  'lib',
  'lua',
  'scripts/bundle.mjs',
  'scripts/embed',
  'vite.web.config.ts',
  'sample/01-quickstart/src',
  'sample/02-web/src',
  'sample/03-scheduled/src',
  'sample/04-console/src',
  'sample/05-order/src',
  'sample/06-durable/src',
  'package.json',
];
/** Written after the build, with the time of its start: the build contains every older source. */
const STAMP = join(root, 'sample', 'dist', 'built');

/** Compiles the package and the samples if a source has changed. Throws if that fails. */
export function build() {
  if (isFresh()) return;
  console.error('compiling …');
  const started = new Date();
  run('npm', ['run', '--silent', 'build']);
  run(process.execPath, [join(root, 'node_modules/typescript-7/bin/tsc'), '-p', 'sample']);
  writeFileSync(STAMP, '');
  utimesSync(STAMP, started, started);
}

/** For vitest.config.ts. */
export { build as setup };

function isFresh() {
  if (!existsSync(STAMP) || !existsSync(join(root, 'dist', 'index.js'))) return false;
  const built = statSync(STAMP).mtimeMs;
  return SOURCES.every((path) => newest(join(root, path)) < built);
}

/** Folders count, too: the time of a folder changes when a file in it is deleted. */
function newest(path) {
  const entry = statSync(path);
  if (!entry.isDirectory()) return entry.mtimeMs;
  return Math.max(entry.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`, { cause: error });
}
