import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandLineError } from '../../errors.js';
import { describe, nearest } from '../../validation.js';
import { SETTING_NAMES } from './settings.js';

export interface ConfigFile {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** In `$HOME`; the first one that exists is read. */
const DEFAULTS = ['.asynq.yaml', '.asynq.yml', '.asynq.json'];

/**
 * Reads the given file, or the first default one that exists; `undefined` if none does.
 *
 * @throws CommandLineError when it cannot be read, is neither YAML nor JSON, or has unknown settings
 */
export async function readConfigFile(
  named: string | undefined,
  home: string | undefined,
): Promise<ConfigFile | undefined> {
  if (named !== undefined) return parse(named, await read(named));
  for (const path of home ? DEFAULTS.map((file) => join(home, file)) : []) {
    const text = await readIfThere(path);
    if (text !== undefined) return parse(path, text);
  }
  return undefined;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await read(path);
  } catch (error) {
    const { code } = (error as Error).cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { message } = cause as Error;
    throw new CommandLineError(`the config file ${path} cannot be read: ${message}; name another with --config`, {
      cause,
    });
  }
}

async function parse(path: string, text: string): Promise<ConfigFile> {
  const yaml = await import('yaml');
  let content: unknown;
  try {
    content = yaml.parse(text, { logLevel: 'error' }) ?? {};
  } catch (cause) {
    // Only the first line: the others quote the file, which may contain a password.
    const [reason] = (cause as Error).message.split(/:?\n/);
    throw new CommandLineError(`the config file ${path} is neither YAML nor JSON: ${reason}`, { cause });
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new CommandLineError(
      `the config file ${path} must contain settings such as "uri: localhost:6379", not ${describe(content)}`,
    );
  }
  return { path, values: checkKeys(path, content) };
}

/** Upper and lower case do not differ, as in asynq. */
function checkKeys(path: string, content: object): Record<string, unknown> {
  const entries = Object.entries(content).map(([key, value]): [string, unknown] => [key.toLowerCase(), value]);
  for (const [key] of entries) {
    if (SETTING_NAMES.some((name) => name === key)) continue;
    const near = nearest(key, SETTING_NAMES);
    const remedy = near ? `did you mean "${near}"?` : `known are ${SETTING_NAMES.join(', ')}`;
    throw new CommandLineError(`unknown setting ${describe(key)} in the config file ${path}; ${remedy}`);
  }
  return Object.fromEntries(entries);
}
