// The last step of `npm run build`: makes few files of the hundreds of modules, as a program reads them at its start.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const { exports, bin } = JSON.parse(readFileSync(at('package.json'), 'utf8'));

/** What package.json names: `dist/index.js` is made of `dist/modules/index.js`. */
const entries = [...Object.values(exports).flatMap(({ default: path }) => path ?? []), ...Object.values(bin)]
  .map((path) => path.match(/^\.\/dist\/(.+)\.js$/)[1])
  .map((name) => [name, at(`dist/modules/${name}.js`)]);

const bundle = await rolldown({
  input: Object.fromEntries(entries),
  // Packages of npm stay what they are: the application's own copies of them are used.
  external: /^[^./]/,
  platform: 'node',
  // A warning is about something that works by chance.
  onLog: (level, log) => {
    if (level === 'warn') throw new Error(log.message);
  },
});
await bundle.write({
  dir: at('dist'),
  format: 'esm',
  // Nest and our own errors tell names of classes.
  keepNames: true,
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  // They are in the declarations.
  comments: { jsdoc: false },
});
await bundle.close();
