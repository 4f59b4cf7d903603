import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Programs, repository } from './program.js';

vi.setConfig({ testTimeout: 300_000 });

const NOT_SOURCE: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist']);

const programs = new Programs();
let clone: string;

beforeAll(() => {
  // As it is cloned: without any build, so that none of the repository's own is found or deleted.
  clone = mkdtempSync(join(tmpdir(), 'asynq-nest-cli-'));
  cpSync(repository, clone, { recursive: true, filter: (path) => !NOT_SOURCE.has(basename(path)) });
  symlinkSync(join(repository, 'node_modules'), join(clone, 'node_modules'));
  // Types are checked by `npm run types`; with TypeScript 6 that is half of the time.
  const settings = join(clone, 'tsconfig.json');
  const text = readFileSync(settings, 'utf8');
  writeFileSync(settings, text.replace('"compilerOptions": {', '"compilerOptions": { "noCheck": true,'));
});
afterAll(async () => {
  await programs.destroy();
  await rm(clone, { recursive: true, force: true });
});

const nest = (...args: string[]) => programs.start('npx', ['--no-install', 'nest', ...args], {}, clone);

interface Project {
  readonly root: string;
  readonly sourceRoot: string;
  readonly entryFile: string;
  readonly compilerOptions: { readonly tsConfigPath: string };
}

const textOf = (folder: string, file: string): string => readFileSync(join(folder, 'dist', 'modules', file), 'utf8');

/** The compiled modules, of which `npm run build` makes few files at its end. */
const codeIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js'))
    .toSorted();

describe('the Nest CLI', () => {
  it('starts the quickstart sample with nest start, compiled together with the library', async () => {
    const program = nest('start', 'quickstart', '--', 'lib/nest/decorators');
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    expect(program.stdout).toMatch(/^\d+ files, one task each, in memory$/m);
    expect(program.stdout).toMatch(/^report:publish: a report on \d+ files \(attempt 3\)$/m);
  });

  it('builds with nest build, and TypeScript 6, the same JavaScript as npm run build with TypeScript 7', async () => {
    const program = nest('build');
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    const files = codeIn(join(clone, 'dist', 'modules'));
    expect(files).toEqual(
      expect.arrayContaining(['index.js', 'broker/redis/scripts/lua.js', 'dashboard/web-assets.js']),
    );
    expect(files).toEqual(codeIn(join(repository, 'dist', 'modules')));
    const differing = files.filter((file) => textOf(repository, file) !== textOf(clone, file));
    expect(differing).toEqual([]);
  });

  it('has a project for each sample, with the file that it starts', () => {
    const projects = Object.values<Project>(
      JSON.parse(readFileSync(join(repository, 'nest-cli.json'), 'utf8')).projects,
    );
    const samples = readdirSync(join(repository, 'sample')).filter((name) => /^\d\d-/.test(name));
    expect([...new Set(projects.map(({ root }) => basename(root)))].toSorted()).toEqual(samples.toSorted());
    for (const { sourceRoot, entryFile, compilerOptions } of projects) {
      expect(existsSync(join(repository, sourceRoot, `${entryFile}.ts`)), `${sourceRoot}/${entryFile}`).toBe(true);
      expect(existsSync(join(repository, compilerOptions.tsConfigPath)), compilerOptions.tsConfigPath).toBe(true);
    }
  });
});
