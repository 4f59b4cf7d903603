import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll } from 'vitest';

/** Where packages of this repository are found. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));

/** Has modules find their files as where their sources are. */
const atItsSource = {
  name: 'at-its-source',
  transform: (code: string, id: string) =>
    code.includes('import.meta.url') && !id.includes('node_modules')
      ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
      : undefined,
};

/** Packages that Nest or this package load only if they are there. */
const OPTIONAL =
  /^(@nestjs\/(microservices|websockets|platform-)|@nestjs-cls\/|@opentelemetry\/|class-|drizzle-orm|nestjs-cls|prom-client|typeorm)/;

/**
 * Compiles modules for threads and processes before the tests of a file, with the sources of this package in them: a thread cannot load
 * TypeScript, and a process takes seconds for it. The packages that they need are in them, too: Nest and RxJS are hundreds of files, whose
 * loading is most of what the start of a thread costs.
 *
 * @returns finds the compiled file of one
 */
export function useThreadModules(...files: readonly URL[]): (name: string) => URL {
  let dir = '';
  beforeAll(async () => {
    const { build } = await import('vite');
    await mkdir(CACHE, { recursive: true });
    dir = await mkdtemp(join(CACHE, 'threads-'));
    const input = Object.fromEntries(files.map((url) => [basename(url.pathname, '.ts'), fileURLToPath(url)]));
    await build({
      configFile: false,
      logLevel: 'error',
      plugins: [atItsSource],
      ssr: { noExternal: true },
      build: {
        ssr: true,
        outDir: dir,
        minify: false,
        target: 'node20',
        rollupOptions: { input, external: OPTIONAL, output: { entryFileNames: '[name].mjs' } },
      },
    });
  }, 60_000);
  afterAll(() => rm(dir, { recursive: true, force: true }));
  return (name) => pathToFileURL(join(dir, `${name}.mjs`));
}
