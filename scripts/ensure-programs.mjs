// Makes sure that the programs which tests start are there: `node scripts/ensure-programs.mjs [PROGRAM...]`, by default all.
// Installs Debian's packages where it can (root, apt-get); elsewhere says what to do and exits with 1.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `Redis server v=7.0.15 sha=...` → `7.0.15`; undefined for any other text. */
export const versionOf = (text) =>
  /\b(?:v=|tmux (?:next-)?|Chrom(?:e|ium) |PostgreSQL\) |Ver )(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1];

/** Debian keeps PostgreSQL out of PATH, by version. */
function postgresPrograms() {
  const root = '/usr/lib/postgresql';
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
    return versions.map((version) => join(root, version, 'bin', 'postgres'));
  } catch {
    return [];
  }
}

/**
 * By name: the package of the same name has them on Debian. `better`: a program, and its package, that is taken in its place where
 * it can be had. `or`: names it has elsewhere.
 */
const PROGRAMS = {
  'redis-server': {
    flag: '--version',
    // Lua scripts, ACL and CLIENT TRACKING as this package uses them.
    oldest: '6.2',
    why: 'the tests start their own servers and',
    note: 'A running server is not needed, and one that runs already is left alone.',
    elsewhere: { Fedora: 'sudo dnf install redis', Alpine: 'sudo apk add redis', macOS: 'brew install redis' },
  },
  tmux: {
    flag: '-V',
    oldest: '2.9',
    why: 'the command line is tested in a terminal; the tests',
    note: 'The tests have a tmux server of their own.',
    elsewhere: { Fedora: 'sudo dnf install tmux', Alpine: 'sudo apk add tmux', macOS: 'brew install tmux' },
  },
  chromium: {
    // Chromium without its window, menus and profile: a tab costs a third of the processor's time.
    better: 'chromium-headless-shell',
    or: () => ['chromium-browser', 'google-chrome', 'google-chrome-stable'],
    flag: '--version',
    oldest: '120.0',
    why: 'the page of the console is tested in a browser; the tests',
    note: 'Chrome does as well; another place of it goes into the variable CHROMIUM.',
    elsewhere: {
      Fedora: 'sudo dnf install chromium',
      Alpine: 'sudo apk add chromium',
      macOS: 'brew install --cask google-chrome, and set CHROMIUM to the program in it',
    },
  },
  postgresql: {
    or: () => [...postgresPrograms(), 'postgres'],
    flag: '--version',
    oldest: '12.0',
    why: 'the outbox is tested on a real database; the tests',
    note: 'A running server is not needed: the tests start their own.',
    elsewhere: {
      Fedora: 'sudo dnf install postgresql-server',
      Alpine: 'sudo apk add postgresql',
      macOS: 'brew install postgresql',
    },
  },
  'mariadb-server': {
    or: () => ['mariadbd'],
    flag: '--version',
    oldest: '10.6',
    why: 'the outbox is tested on a real database; the tests',
    note: 'A running server is not needed: the tests start their own.',
    elsewhere: {
      Fedora: 'sudo dnf install mariadb-server',
      Alpine: 'sudo apk add mariadb',
      macOS: 'brew install mariadb',
    },
  },
};

/** Whether dotted version `a` is at least `b`, number by number. */
export function isAtLeast(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (const [index, wanted] of right.entries()) {
    if ((left[index] ?? 0) !== wanted) return (left[index] ?? 0) > wanted;
  }
  return true;
}

/** The names under which a program may be found, the one of its variable first: CHROMIUM for chromium. */
export const namesOf = (name) =>
  [process.env[name.toUpperCase()], PROGRAMS[name].better, name, ...(PROGRAMS[name].or?.() ?? [])].filter(Boolean);

/** The first of its names that can be run, with its version; undefined when none can. */
export function findProgram(name, commands = PROGRAMS[name].or ? namesOf(name) : [name]) {
  for (const command of commands) {
    const run = spawnSync(command, [PROGRAMS[name].flag], { encoding: 'utf8' });
    if (!run.error) return { command, version: versionOf(run.stdout) ?? 'unknown' };
  }
  return undefined;
}

const installedVersion = (name) => findProgram(name)?.version;

const hasAptGet = () => !spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).error;

function aptGet(...args) {
  // RUNLEVEL=1: the package must not start a server of its own on port 6379.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const run = spawnSync('apt-get', ['-y', '-q', ...args], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  return run.status === 0;
}

/** All at once: reading the lists of packages takes longer than most of them. What is `better` is no reason to fail: Debian 11 has none. */
function install(names) {
  const better = names.map((name) => PROGRAMS[name].better).filter(Boolean);
  const all = [...names.filter((name) => !PROGRAMS[name].better), ...better];
  console.log(`No ${all.join(', no ')} was found in PATH: installing ${all.join(', ')} with apt-get.`);
  if (!aptGet('update')) return;
  if (aptGet('install', '--no-install-recommends', ...all) || better.length === 0) return;
  const missing = names.filter((name) => installedVersion(name) === undefined);
  if (missing.length > 0) aptGet('install', '--no-install-recommends', ...missing);
}

function remedy(name, found) {
  const { why, oldest, note, elsewhere } = PROGRAMS[name];
  const ways = Object.entries({ 'Debian, Ubuntu': `sudo apt-get install ${name}`, ...elsewhere });
  return `
${found ? `${name} ${found} is too old` : `No ${name} was found in PATH`}: ${why} need ${oldest} or later.
Install it and run the command again:
${ways.map(([system, way]) => `  ${system.padEnd(16)} ${way}`).join('\n')}
${note}`;
}

/** A program that is named by its variable is the one that is wanted. */
function lacks(name) {
  const { better } = PROGRAMS[name];
  if (!better || process.env[name.toUpperCase()]) return installedVersion(name) === undefined;
  return !findProgram(name, [better]);
}

function ensure(names) {
  const missing = names.filter((name) => lacks(name));
  if (missing.length > 0 && process.getuid?.() === 0 && hasAptGet()) install(missing);
  for (const name of names) {
    const found = installedVersion(name);
    if (found !== undefined && isAtLeast(found, PROGRAMS[name].oldest)) continue;
    console.error(remedy(name, found));
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  ensure(names.length > 0 ? names : Object.keys(PROGRAMS));
}
