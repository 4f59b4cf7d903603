// What this package weighs: `npm run footprint`, after a build. Its size, what an application loads of it, and what that costs at the start.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const RUNS = 7;
const kB = (bytes) => `${Math.round(bytes / 1000)} kB`;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const run = (code, env = {}) =>
  execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });

/** The files of `dist` that a program loads, as V8 names them. */
function loadedBy(code) {
  const folder = mkdtempSync(join(tmpdir(), 'asynq-footprint-'));
  try {
    run(code, { NODE_V8_COVERAGE: folder });
    const scripts = readdirSync(folder).flatMap((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')).result);
    const urls = new Set(scripts.map(({ url }) => url).filter((url) => url.startsWith('file://')));
    const ours = [...urls].map((url) => fileURLToPath(url)).filter((file) => file.startsWith(join(root, 'dist')));
    return { files: ours.length, bytes: ours.reduce((sum, file) => sum + statSync(file).size, 0) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const NEST = `await import('reflect-metadata'); const { NestFactory } = await import('@nestjs/core'); await import('ioredis');`;
/** Of the time of the CPU less depends on what else the machine does. */
const timed = (body) =>
  `${NEST} const at = performance.now(), cpu = process.cpuUsage(); ${body}
   const { user, system } = process.cpuUsage(cpu);
   console.log(JSON.stringify([performance.now() - at, (user + system) / 1000])); process.exit()`;
const context = (imports) => `class App {}
  Reflect.defineMetadata('imports', [${imports}], App);
  await NestFactory.createApplicationContext(App, { logger: false });`;
const TIMES = {
  'Nest without it: an application context starts': timed(context('')),
  'import nestjs-asynq, after Nest and ioredis': timed(`await import('nestjs-asynq');`),
  'import it, and an application context with a client and a server in memory starts': timed(
    `const { AsynqModule } = await import('nestjs-asynq');
     ${context(`AsynqModule.forRoot({ connection: 'memory', server: { concurrency: 10 } })`)}`,
  ),
};

// `npm pack` counts without writing; scripts would build anew.
const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: root,
  encoding: 'utf8',
});
const [{ size, unpackedSize, entryCount }] = Object.values(JSON.parse(packed));
console.log(`package: ${kB(size)} packed, ${kB(unpackedSize)} unpacked, ${entryCount} files`);

for (const entry of ['', '/metrics', '/outbox', '/testing', '/dashboard']) {
  const { files, bytes } = loadedBy(`await import('nestjs-asynq${entry}')`);
  console.log(`import nestjs-asynq${entry}: ${files} files of the package, ${kB(bytes)}`);
}
// In turns, so that a machine that slows down does so for all.
const times = Object.fromEntries(Object.keys(TIMES).map((name) => [name, []]));
for (let round = 0; round < RUNS; round++) {
  for (const [name, code] of Object.entries(TIMES)) times[name].push(JSON.parse(run(code)));
}
const range = (values) =>
  `${Math.round(median(values))} ms (${Math.round(Math.min(...values))} to ${Math.round(Math.max(...values))})`;
for (const [name, values] of Object.entries(times)) {
  console.log(`${name}: ${range(values.map(([wall]) => wall))}, CPU ${range(values.map(([, cpu]) => cpu))}`);
}
