import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

/*
 * Finds Go and builds the programs of test/interop/go and go-rate, once for all specs. Where Go is
 * missing the interop suites are skipped with the reason in the output; under CI (the variable CI
 * is set) they fail instead, since they must run there.
 */

const INTEROP = fileURLToPath(new URL('../interop/', import.meta.url));
/**
 * A build on a machine that never built asynq compiles Go's standard library and downloads the
 * modules.
 */
export const BUILD_TIMEOUT = 300_000;

const findGo = (): string | undefined => {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/go/bin', '/usr/lib/go/bin'];
  return folders.map((folder) => join(folder, 'go')).find((file) => existsSync(file));
};

const go = findGo();

/**
 * `describe` for suites that need Go: without it they are reported as skipped, with the reason in
 * the output, and fail where the variable CI says that they must run.
 */
export const describeWithGo = (name: string, define: () => void): void => {
  const reason = 'Go was not found in PATH nor in /usr/local/go/bin: install Go 1.24 or later';
  if (!go && process.env['CI']) {
    describe(name, () => it('has Go', () => expect.unreachable(`${reason}. CI is set, so this suite must run.`)));
    return;
  }
  if (!go) console.warn(`\n*** SKIPPED: ${name}. ${reason}. ***\n`);
  describe.runIf(go)(name, define);
};

const hashOfSources = (sources: string): string => {
  const hash = createHash('sha256').update(execFileSync(go!, ['version']));
  const files = readdirSync(sources).filter((file) => /\.go$|^go\.(mod|sum)$/.test(file));
  for (const file of files.sort()) hash.update(`\0${file}\0`).update(readFileSync(join(sources, file)));
  return hash.digest('hex').slice(0, 16);
};

/**
 * Spec files run in several processes: the one that can make the folder builds, the others wait for
 * the result.
 */
const takeLock = (lock: string): boolean => {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (age > BUILD_TIMEOUT) rmSync(lock, { recursive: true, force: true });
    return false;
  }
};

const build = async (sources: string, binary: string): Promise<void> => {
  const unfinished = `${binary}.${process.pid}`;
  const args = ['build', '-trimpath', '-ldflags=-s -w', '-o', unfinished, '.'];
  await promisify(execFile)(go!, args, { cwd: sources, timeout: BUILD_TIMEOUT });
  const cache = dirname(binary);
  for (const old of readdirSync(cache)) if (/^peer-[0-9a-f]+$/.test(old)) rmSync(join(cache, old));
  renameSync(unfinished, binary);
};

/** Path of a built program; builds it when its sources have changed since the last time. */
export const buildPeer = async (folder: 'go' | 'go-rate' = 'go'): Promise<string> => {
  const sources = join(INTEROP, folder);
  mkdirSync(join(sources, '.cache'), { recursive: true });
  const binary = join(sources, '.cache', `peer-${hashOfSources(sources)}`);
  const lock = `${binary}.lock`;
  while (!existsSync(binary)) {
    if (takeLock(lock)) {
      try {
        await build(sources, binary);
      } finally {
        rmSync(lock, { recursive: true, force: true });
      }
    } else {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  return binary;
};
