import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Programs, repository } from './program.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const parent = fileURLToPath(new URL('.tmp/', import.meta.url));
const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');

interface Snippet {
  /** The one in its first line (`// main.ts`), else a number. */
  readonly file: string;
  readonly code: string;
  readonly named: boolean;
}

function snippetsOf(markdown: string): Snippet[] {
  const blocks = [...markdown.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms)];
  return blocks.map(([, code], index) => {
    const name = /^\/\/ (\S+\.ts)\n/.exec(code!)?.[1];
    return { file: name ?? `snippet-${index + 1}.ts`, code: code!, named: name !== undefined };
  });
}

/** A part of a program, with what the text before it has declared and what every test has. */
function completed({ code }: Snippet, whole: readonly Snippet[]): string {
  const imports = whole.flatMap(({ file, code }) => {
    const names = [...code.matchAll(/^export (?:const|class) (\w+)/gm)].map(([, name]) => name!);
    return names.length > 0 ? [`import { ${names.join(', ')} } from './${file.replace(/ts$/, 'js')}';`] : [];
  });
  return ["import { expect } from 'vitest';", ...imports, code, 'export {};'].join('\n');
}

/** As a Nest application has it. */
const TSCONFIG = {
  compilerOptions: {
    target: 'ES2023',
    module: 'nodenext',
    strict: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    skipLibCheck: true,
    types: ['node'],
    rootDir: '.',
    outDir: 'dist',
  },
};

/** Puts the time before each piece of output. */
const STAMP = `const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text, ...rest) => write(Date.now() + ' ' + text, ...rest);`;

describe('the README', () => {
  const programs = new Programs();
  let snippets: Snippet[];
  let folder: string;
  let compiler: string;
  const compiled = (file: string): string => join(folder, 'dist', file.replace(/ts$/, 'js'));

  beforeAll(async () => {
    snippets = snippetsOf(await readFile(join(repository, 'README.md'), 'utf8'));
    await mkdir(parent, { recursive: true });
    folder = await mkdtemp(join(parent, 'readme-'));
    const whole = snippets.filter(({ named }) => named);
    for (const snippet of snippets) {
      const text = snippet.named ? snippet.code : completed(snippet, whole);
      await writeFile(join(folder, snippet.file), text);
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    await writeFile(join(folder, 'stamp.mjs'), STAMP);
    const run = promisify(execFile)(process.execPath, [tsc, '-p', folder]);
    compiler = await run.then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}` || 'tsc failed',
    );
  });
  afterAll(async () => {
    await programs.destroy();
    await rm(folder, { recursive: true, force: true });
  });

  it('has programs that compile when pasted', () => {
    expect(snippets.map(({ file }) => file)).toEqual(expect.arrayContaining(['app.module.ts', 'main.ts']));
    expect(snippets.some(({ code }) => code.includes('nestjs-asynq/testing'))).toBe(true);
    expect(compiler).toBe('');
  });

  it('has a quickstart that runs its task after a second, without Redis, and ends with SIGTERM', async () => {
    const program = programs.start(process.execPath, ['--import', join(folder, 'stamp.mjs'), compiled('main.ts')]);
    const [, started] = await program.until(
      /^(\d+) .*Server started: concurrency 50, queues critical=6 default=3 low=1/m,
    );
    const [, ran] = await program.until(/^(\d+) mail to user 42, attempt 1$/m);
    expect(Number(ran) - Number(started)).toBeGreaterThanOrEqual(1_000);
    program.terminate();
    expect(await program.ended, program.output).toEqual({ code: null, signal: 'SIGTERM' }); // Nest's own way
    expect(program.stdout).toMatch(/Server closed$/m);
    expect(program.stdout.match(/mail to user/g)).toHaveLength(1);
    expect(program.stderr).toBe('');
  });

  it('has a test that passes', async () => {
    const { file } = snippets.find(({ code }) => code.includes('nestjs-asynq/testing'))!;
    const log = vi.spyOn(console, 'log').mockReturnValue();
    await import(pathToFileURL(compiled(file)).href); // here, so that its `expect` is ours
    expect(log.mock.calls).toEqual([['mail to user 42, attempt 1']]);
  });
});
