import { createHash } from 'node:crypto';
import { readLua } from './lua.js';
import { SCRIPTS, type ScriptName, type ScriptShape } from './script-registry.js';

export interface ScriptSource {
  readonly text: string;
  readonly sha1: string;
}

/** A header line that prepends another file, as in `-- Uses shared/fence.lua`. */
const USES = /^-- Uses (\S+)$/gm;

/**
 * A line that the text of another file replaces, also within a block: what the file creates then
 * costs nothing while the block is not entered. The file may include others.
 */
const INCLUDES = /^ *-- Includes (\S+)$/gm;

const loaded = new Map<ScriptName, ScriptSource>();

/** The text of a script and its hash in Redis; read at first use and kept. */
export function scriptSource(name: ScriptName): ScriptSource {
  const known = loaded.get(name);
  if (known) return known;
  const own = readLua(scriptFile(name));
  const shared = [...own.matchAll(USES)].map(([, file]) => readLua(file!));
  const text = includeFiles([...shared, own].join('\n'));
  const source = { text, sha1: createHash('sha1').update(text).digest('hex') };
  loaded.set(name, source);
  return source;
}

/** Puts the files in the place of the lines that include them. */
export const includeFiles = (text: string): string =>
  text.replace(INCLUDES, (_, file: string) => includeFiles(readLua(file)));

/** The path of the script below `lua/`. */
export function scriptFile(name: ScriptName): string {
  const { file }: ScriptShape = SCRIPTS[name];
  return `${file ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
}
