import { beforeAll, describe, expect, it } from 'vitest';
import { Program } from './program.js';

/** Prints, for each entry of the package, how many files of it are loaded, and what its exports are called. */
const LOOK = `
import { createRequire } from 'node:module';
const { exports } = createRequire(import.meta.url)('./package.json');
const all = new Map();
const found = {};
for (const [path, { default: file }] of Object.entries(exports)) {
  if (file === undefined) continue;
  const entry = await import(path.replace('.', 'nestjs-asynq'));
  const misnamed = [];
  const twice = [];
  for (const [name, value] of Object.entries(entry)) {
    if (typeof value === 'function' && value.name !== name) misnamed.push(name + ' is ' + value.name);
    if (all.has(name) && all.get(name) !== value) twice.push(name);
    all.set(name, value);
  }
  found[path] = { exports: Object.keys(entry).length, misnamed, twice };
}
process.stdout.write(JSON.stringify(found));
process.exit();
`;

interface Found {
  readonly exports: number;
  readonly misnamed: readonly string[];
  readonly twice: readonly string[];
}

describe('the bundle', () => {
  let found: Readonly<Record<string, Found>>;
  let loaded: readonly string[];

  beforeAll(async () => {
    const tracer = ['--import', './test/e2e/loaded-modules.mjs'];
    const program = new Program(process.execPath, [...tracer, '--input-type=module', '-e', LOOK]);
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    found = JSON.parse(program.stdout) as Record<string, Found>;
    loaded = program.stderr.match(/^loaded \S+\/dist\/\S+$/gm) ?? [];
  });

  it('is read in few files', () => {
    expect(loaded.length).toBeGreaterThan(5);
    expect(loaded.length).toBeLessThan(80);
    expect(loaded.filter((file) => file.includes('/dist/modules/'))).toEqual([]);
  });

  it('keeps the names of classes and functions, which Nest and errors tell', () => {
    expect(Object.keys(found)).toEqual(['.', './metrics', './outbox', './testing', './dashboard']);
    for (const [entry, { exports, misnamed }] of Object.entries(found)) {
      expect(exports, entry).toBeGreaterThan(0);
      expect(misnamed, entry).toEqual([]);
    }
  });

  it('holds each thing once, whatever entry it comes from', () => {
    expect(Object.values(found).flatMap(({ twice }) => twice)).toEqual([]);
  });
});
