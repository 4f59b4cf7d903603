// A step of `npm run build`: puts the embedding modules in place of those that read files.
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { luaModule } from './lua.mjs';
import { keepLicenses, webModule } from './web.mjs';

function replace(file, text) {
  const target = fileURLToPath(new URL(`../../dist/modules/${file}`, import.meta.url));
  if (!existsSync(target)) throw new Error(`${target} is missing: compile first, with npm run build`);
  writeFileSync(target, text);
}

replace('broker/redis/scripts/lua.js', luaModule());
replace('dashboard/web-assets.js', webModule());
keepLicenses();
