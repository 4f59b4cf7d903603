import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const repository = new URL('../../', import.meta.url);

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

it.each(['package-lock.json', 'bench/package-lock.json', 'bench/codec/package-lock.json'])(
  '%s names no registry, and locks the optional packages of every platform',
  (path) => {
    const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
      readFileSync(new URL(path, repository), 'utf8'),
    );
    const entries = Object.entries(lock.packages);
    const locked = new Set(entries.map(([place]) => place.replace(/^.*node_modules\//, '')));
    const wanted = entries.flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies));
    expect(entries.length).toBeGreaterThan(1);
    expect(entries.filter(([, { resolved }]) => resolved?.includes('://'))).toEqual([]);
    // npm ci refuses a lock file that lacks one, and npm writes such a file where a registry does not have the package.
    expect(wanted.filter((name) => !locked.has(name))).toEqual([]);
  },
);
