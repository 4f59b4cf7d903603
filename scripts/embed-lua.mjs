// The last step of the build: dist/broker/redis/lua.js with the text of every file of lua/ (see lib/broker/redis/lua.ts).
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'dist', 'broker', 'redis', 'lua.js');
if (!existsSync(target)) throw new Error(`${target} is missing: compile first, with npm run build`);

const files = readdirSync(join(root, 'lua'), { recursive: true }).filter((file) => file.endsWith('.lua'));
const texts = files
  .toSorted()
  .map((file) => [file.split(sep).join('/'), readFileSync(join(root, 'lua', file), 'utf8')]);

writeFileSync(
  target,
  `const TEXTS = new Map(${JSON.stringify(texts, null, 2)});

export function readLua(file) {
  const text = TEXTS.get(file);
  if (text === undefined) throw new Error(\`no file "\${file}" in lua/\`);
  return text;
}
`,
);
