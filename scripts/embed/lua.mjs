import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../lua', import.meta.url));

/** The text of the module that replaces lib/broker/redis/scripts/lua.ts in a build: it contains every file of lua/. */
export function luaModule() {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.lua'));
  const texts = files.toSorted().map((file) => [file.split(sep).join('/'), readFileSync(join(folder, file), 'utf8')]);
  return `const TEXTS = new Map(${JSON.stringify(texts, null, 4)});
export function readLua(file) {
    const text = TEXTS.get(file);
    if (text === undefined)
        throw new Error(\`no file "\${file}" in lua/\`);
    return text;
}
`;
}
