import { readFileSync } from 'node:fs';

/**
 * The text of a file of `lua/`, such as `shared/fence.lua`. In the package, scripts/embed/lua.mjs
 * replaces this module by one with all texts: bundles, and test runners that compile to CommonJS,
 * have no `import.meta.url`.
 */
export const readLua = (file: string): string =>
  readFileSync(new URL(`../../../../lua/${file}`, import.meta.url), 'utf8');
