// Import cycles through .tsx files. oxlint's import/no-cycle misses them: it does not find `x.tsx` where `./x.js` is imported.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const IMPORTS = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;

/** The TypeScript file that `source` names in `file`, or undefined when it is none. */
export function findImported(file, source) {
  const path = resolve(dirname(file), source);
  return [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')].find((one) => one !== path && existsSync(one));
}

const known = new Map();
function importsOf(file) {
  if (!known.has(file)) {
    const sources = [...readFileSync(file, 'utf8').matchAll(IMPORTS)].map(([, source]) => source);
    known.set(
      file,
      sources.map((source) => findImported(file, source)).filter((found) => found !== undefined),
    );
  }
  return known.get(file);
}

/** Whether `from` imports `target`, directly or through other files. */
export function reaches(from, target, seen = new Set()) {
  if (from === target) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return importsOf(from).some((next) => reaches(next, target, seen));
}
