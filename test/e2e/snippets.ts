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

/** The TypeScript of one page, compiled as though it were pasted: programs by their names, parts of programs completed. */
export class PageSnippets {
  private constructor(
    readonly folder: string,
    readonly snippets: readonly Snippet[],
    /** What the compiler has to say; empty when all is well. */
    readonly complaints: string,
  ) {}

  /** @param page path below the repository */
  static async compile(page: string): Promise<PageSnippets> {
    const snippets = snippetsOf(await readFile(join(repository, page), 'utf8'));
    await mkdir(parent, { recursive: true });
    const folder = await mkdtemp(join(parent, `${basename(page, '.md')}-`));
    for (const snippet of snippets) {
      const text = snippet.named ? snippet.code : completed(snippet);
      await writeFile(join(folder, snippet.file), text);
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    const run = promisify(execFile)(process.execPath, [tsc, '-p', folder]);
    const complaints = await run.then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}` || 'tsc failed',
    );
    return new PageSnippets(folder, snippets, complaints);
  }

  compiled(file: string): string {
    return join(this.folder, 'dist', file.replace(/ts$/, 'js'));
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
