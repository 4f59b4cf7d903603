import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
// @ts-expect-error -- a script without types
import { bundledLicenses } from './scripts/bundled-licenses.mjs';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Whoever builds or tests with another NODE_ENV gets what is shipped, and not Preact's larger one for development.
process.env.NODE_ENV = 'production';

/** The page of the web console: `npm run build:web`. Every address in it is relative, so that it works under any prefix. */
export default defineConfig({
  root: here('./lib/dashboard/web'),
  base: './',
  plugins: [bundledLicenses('assets/licenses.txt')],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: here('./dist/dashboard/web'),
    emptyOutDir: true,
    target: 'es2022',
    // No data: addresses and no inline script: the page is served with a strict content security policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
});
