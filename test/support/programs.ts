import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tests = join(root, 'test');
/** Where packages of this repository are found. */
const CACHE = join(root, 'node_modules', '.cache', 'programs');
/** Nobody runs what is as old, unless it is what the sources make. */
const OLD_MS = 3_600_000;

/** Has modules find their files as where their sources are. */
const atItsSource = {
  name: 'at-its-source',
  transform: (code: string, id: string) =>
    code.includes('import.meta.url') && !id.includes('node_modules')
      ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
      : undefined,
};

/** Packages that come with it, as they are hundreds of files: to load them is most of what a start costs. */
const WITH_IT = /^(@nestjs\/(common|core)|rxjs|ioredis|reflect-metadata)(\/|$)/;
/** What Nest, or this package, loads only if it is there. */
const OPTIONAL =
  /^(@nestjs\/(microservices|websockets|platform-)|@nestjs-cls\/|@opentelemetry\/|class-|drizzle-orm|nestjs-cls|prom-client|typeorm)/;

let built: Promise<string> | undefined;

/**
 * The compiled file of a program that a test starts (`*-process.ts`), or of a module that a thread loads (`*.module.ts`), with the sources of
 * this package in it: a thread cannot load TypeScript, and a process takes ten times as long to start with it. The first call
 * after a change compiles all of them, which takes about a second.
 *
 * @param source as in `new URL('./relay-process.ts', import.meta.url)`
 */
export async function compiled(source: URL): Promise<string> {
  const dir = await (built ??= build());
  return join(dir, relative(tests, fileURLToPath(source)).replace(/\.ts$/, '.mjs'));
}

/** Several workers of Vitest may come at once: each compiles, and the first to end has made it. */
async function build(): Promise<string> {
  const [ours, all] = await Promise.all([filesIn(tests), filesIn(join(root, 'lib'))]);
  const times = await Promise.all([...ours, ...all].map((file) => stat(file).then(({ mtimeMs }) => mtimeMs)));
  const dir = join(CACHE, `${Math.max(...times).toString(36)}-${times.length}`);
  if (existsSync(dir)) return dir;
  await mkdir(CACHE, { recursive: true });
  await removeOld();
  const made = await mkdtemp(join(CACHE, 'new-'));
  const programs = ours.filter(
    (file) => /(-process|\.module)\.ts$/.test(file) && !file.startsWith(join(tests, 'support')),
  );
  const { build: compile } = await import('vite');
  await compile({
    configFile: false,
    logLevel: 'error',
    plugins: [atItsSource],
    ssr: { noExternal: WITH_IT },
    build: {
      ssr: true,
      outDir: made,
      minify: false,
      target: 'node20',
      rollupOptions: {
        external: OPTIONAL,
        input: Object.fromEntries(programs.map((file) => [relative(tests, file).replace(/\.ts$/, ''), file])),
        output: { entryFileNames: '[name].mjs', chunkFileNames: 'shared/[name]-[hash].mjs' },
      },
    },
  });
  await rename(made, dir).catch(async (error: unknown) => {
    if (!existsSync(dir)) throw error;
    await rm(made, { recursive: true });
  });
  return dir;
}

const filesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map(({ parentPath, name }) => join(parentPath, name));

async function removeOld(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const { mtimeMs } = await stat(join(CACHE, name));
    if (Date.now() - mtimeMs > OLD_MS) await rm(join(CACHE, name), { recursive: true, force: true });
  }
}
