// Makes sure that a redis-server is there before the tests start their own: `node scripts/ensure-redis.mjs`.
// Installs Debian's package where it can (root, apt-get); elsewhere says what to do and exits with 1.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Lua scripts, ACL and CLIENT TRACKING as this package uses them. */
export const OLDEST = '6.2';

/** `Redis server v=7.0.15 sha=...` → `7.0.15`; undefined for any other text. */
export const versionOf = (text) => /\bv=(\d+\.\d+\.\d+)/.exec(text)?.[1];

/** Whether dotted version `a` is at least `b`, number by number. */
export function isAtLeast(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (const [index, wanted] of right.entries()) {
    if ((left[index] ?? 0) !== wanted) return (left[index] ?? 0) > wanted;
  }
  return true;
}

function installedVersion() {
  const run = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return run.error ? undefined : (versionOf(run.stdout) ?? 'unknown');
}

const hasAptGet = () => !spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).error;

function aptGet(...args) {
  // RUNLEVEL=1: the package must not start a server of its own on port 6379.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const run = spawnSync('apt-get', ['-y', '-q', ...args], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  return run.status === 0;
}

const install = () => aptGet('update') && aptGet('install', '--no-install-recommends', 'redis-server');

const remedy = (found) => `
${found ? `redis-server ${found} is too old` : 'No redis-server was found in PATH'}: the tests start their own servers and need ${OLDEST} or later.
Install it and run the command again:
  Debian, Ubuntu   sudo apt-get install redis-server
  Fedora           sudo dnf install redis
  Alpine           sudo apk add redis
  macOS            brew install redis
A running server is not needed, and one that runs already is left alone.`;

function ensureRedis() {
  let found = installedVersion();
  if (found === undefined && process.getuid?.() === 0 && hasAptGet()) {
    console.log('No redis-server was found in PATH: installing the package redis-server with apt-get.');
    if (install()) found = installedVersion();
  }
  if (found !== undefined && isAtLeast(found, OLDEST)) return;
  console.error(remedy(found));
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) ensureRedis();
