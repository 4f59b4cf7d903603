import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { repository } from './program.js';

const parent = fileURLToPath(new URL('.tmp/', import.meta.url));
const tsc = join(repository, 'node_modules', 'typescript-7', 'bin', 'tsc');

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

/** A part of a program, with what every test has. What it takes from another block it imports itself. */
const completed = ({ code }: Snippet): string => `import { expect } from 'vitest';\n${code}\nexport {};`;

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

const run = promisify(execFile);

/** What the compiler has to say of a folder. */
const compile = (folder: string): Promise<string> =>
  run(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], { cwd: folder }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}` || 'tsc failed',
  );

/** The TypeScript of one page, compiled as though it were pasted: programs by their names, parts of programs completed. */
export class PageSnippets {
  private constructor(
    readonly folder: string,
    private readonly name: string,
    readonly snippets: readonly Snippet[],
    /** What the compiler has to say of this page; empty when all is well. */
    readonly complaints: string,
  ) {}

  /** @param page path below the repository */
  static async compile(page: string): Promise<PageSnippets> {
    return (await PageSnippets.compileAll([page]))[0]!;
  }

  /** In one run of the compiler, which reads the types of packages once. They share a folder, which the first to be removed removes. */
  static async compileAll(pages: readonly string[]): Promise<PageSnippets[]> {
    await mkdir(parent, { recursive: true });
    const folder = await mkdtemp(join(parent, 'pages-'));
    const written = await Promise.all(
      pages.map(async (page) => {
        const name = basename(page, '.md');
        const snippets = snippetsOf(await readFile(join(repository, page), 'utf8'));
        await mkdir(join(folder, name));
        for (const snippet of snippets) {
          await writeFile(join(folder, name, snippet.file), snippet.named ? snippet.code : completed(snippet));
        }
        return { name, snippets };
      }),
    );
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    const complaints = await compile(folder);
    const known = written.map(({ name }) => `${name}/`);
    const lines = complaints.split('\n').filter((line) => line !== '');
    const of = (line: string): string | undefined => known.find((name) => line.startsWith(name));
    let last: string | undefined;
    // A line that goes on with the one before begins with a space; what belongs to no page belongs to all of them.
    const owners = lines.map((line) => (last = line.startsWith(' ') ? last : of(line)));
    return written.map(({ name, snippets }) => {
      const ours = lines.filter((_, n) => owners[n] === undefined || owners[n] === `${name}/`);
      return new PageSnippets(folder, name, snippets, ours.join('\n'));
    });
  }

  compiled(file: string): string {
    return join(this.folder, 'dist', this.name, file.replace(/ts$/, 'js'));
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
