import { createHash } from 'node:crypto';
import { readLua } from './lua.js';
import { SCRIPTS, type ScriptName, type ScriptShape } from './script-registry.js';

export interface ScriptSource {
  readonly text: string;
  readonly sha1: string;
}

/** A header line that prepends another file, as in `-- Uses shared/fence.lua`. */
const USES = /^-- Uses (\S+)$/gm;

const loaded = new Map<ScriptName, ScriptSource>();

/** The text of a script and its hash in Redis; read at first use and kept. */
export function scriptSource(name: ScriptName): ScriptSource {
  const known = loaded.get(name);
  if (known) return known;
  const own = readLua(scriptFile(name));
  const shared = [...own.matchAll(USES)].map(([, file]) => readLua(file!));
  const text = [...shared, own].join('\n');
  const source = { text, sha1: createHash('sha1').update(text).digest('hex') };
  loaded.set(name, source);
  return source;
}

/** The path of the script below `lua/`. */
export function scriptFile(name: ScriptName): string {
  const { file }: ScriptShape = SCRIPTS[name];
  return `${file ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
}
