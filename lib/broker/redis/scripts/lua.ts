import { readFileSync } from 'node:fs';

/**
 * The text of a file of `lua/`, such as `shared/fence.lua`. In the package, scripts/embed/lua.mjs puts a module with all
 * texts in place of this one: a bundle, or a test runner that compiles to CommonJS, knows no `import.meta.url`.
 */
export const readLua = (file: string): string =>
  readFileSync(new URL(`../../../../lua/${file}`, import.meta.url), 'utf8');
