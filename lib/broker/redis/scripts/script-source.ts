import { createHash } from 'node:crypto';
import { readLua } from './lua.js';
import { SCRIPTS, type ScriptName } from './script-registry.js';
import type { ScriptShape } from './script-shape.js';

export interface ScriptSource {
  readonly text: string;
  readonly sha1: string;
  /** The last argument, of a script that shares its text with others. */
  readonly part: ScriptName | undefined;
}

/**
 * A line that the text of another file replaces: `-- Uses shared/fence.lua` in a header, or `--
 * Includes …` elsewhere, also within a block. The file may include others.
 */
const INCLUDES = /^ *-- (?:Uses|Includes) (\S+)$/gm;

/** The scripts with the engine of links are one text. It has a branch for each. */
export const LINKED = 'shared/linked.lua';

const loaded = new Map<ScriptName, ScriptSource>();

/** The text of a script and its hash in Redis; read at first use and kept. */
export function scriptSource(name: ScriptName): ScriptSource {
  const known = loaded.get(name);
  if (known) return known;
  const part = readLua(LINKED).includes(`script == '${name}'`) ? name : undefined;
  const text = textOf(part ? LINKED : scriptFile(name));
  const source = { text, sha1: createHash('sha1').update(text).digest('hex'), part };
  loaded.set(name, source);
  return source;
}

/** A file of `lua/` with the files that it includes. */
export const textOf = (file: string): string =>
  readLua(file).replace(INCLUDES, (_, included: string) => textOf(included));

/** The path of the script below `lua/`. */
export function scriptFile(name: ScriptName): string {
  const { file }: ScriptShape = SCRIPTS[name];
  return `${file ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
}
