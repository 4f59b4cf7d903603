// A plugin of the Nest CLI (see nest-cli.json). `nest build` and `nest start` embed what scripts/embed/into-dist.mjs embeds
// for `npm run build`: the Lua scripts and the console's page.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { luaModule } from './lua.mjs';
import { keepLicenses, webModule } from './web.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

const MODULES = {
  'lib/broker/redis/scripts/lua.ts': luaModule,
  'lib/dashboard/web-assets.ts': pageModule,
};

/** Replaces the two modules after TypeScript has compiled them, so that only their declarations remain. */
export const after = () => () => (compiled) => {
  const source = ts.getOriginalNode(compiled);
  const path = Object.keys(MODULES).find((path) => source.fileName.endsWith(`/${path}`));
  if (path === undefined) return compiled;
  const text = MODULES[path]();
  return ts.createSourceFile(source.fileName, text, ts.ScriptTarget.ES2022, true);
};

function pageModule() {
  const { status } = spawnSync('npm', ['run', '--silent', 'build:web'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error('npm run build:web failed');
  const text = webModule();
  keepLicenses();
  return text;
}
