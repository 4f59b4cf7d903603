import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseDuration } from '../../lib/duration.js';
import {
  EXTRAS,
  resolveModuleOptions,
  type AsynqModuleOptions,
} from '../../lib/nest/connection/asynq-module.options.js';
import { resolveServerOptions, type ServerOptions } from '../../lib/server/options.js';
import { repository } from './program.js';

const UNKNOWN = { '': true };

/** The refusal of an option that is like no other names those there are. */
function namesIn(refuse: () => unknown): string[] {
  try {
    refuse();
  } catch (error) {
    return /known are (.*)$/.exec((error as Error).message)![1]!.split(', ');
  }
  throw new Error('an unknown option was not refused');
}

/** The rows of the table under a heading: what stands in the first column, and the default in the second. */
function rowsUnder(heading: string, page: string): Map<string, string> {
  const [, section = ''] = new RegExp(`^## ${heading}\n(.*?)(?=^## |(?![^]))`, 'ms').exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (`.*?) *\| *(.*?) *\|/gm)];
  return new Map(
    rows.flatMap(([, names, value]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => [name!, value!])),
  );
}

describe('docs/configuration.md', () => {
  let page: string;
  beforeAll(async () => {
    page = await readFile(join(repository, 'docs/configuration.md'), 'utf8');
  });

  it('tells of every option of the module, and of no other', () => {
    const known = namesIn(() => resolveModuleOptions(UNKNOWN as unknown as AsynqModuleOptions));
    expect([...rowsUnder('The module', page).keys()].toSorted()).toEqual(
      [...new Set([...known, ...EXTRAS])].toSorted(),
    );
  });

  it('tells of every option of the server, and of no other', () => {
    const known = namesIn(() => resolveServerOptions(UNKNOWN as unknown as ServerOptions));
    expect([...rowsUnder('The server', page).keys()].toSorted()).toEqual(known.toSorted());
  });

  it('tells the numbers and times that are the defaults', () => {
    const resolved: Readonly<Record<string, unknown>> = { ...resolveServerOptions() };
    const told = [...rowsUnder('The server', page)].flatMap(([name, value]) => {
      const [, text] = /^(?:`')?(\d+[a-z]*)(?:'`)?$/.exec(value) ?? [];
      return text ? [[name, /^\d+$/.test(text) ? Number(text) : parseDuration(text, name)]] : [];
    });
    expect(told.map(([name]) => name)).toContain('shutdownTimeout');
    expect(told).toEqual(told.map(([name]) => [name, resolved[name as string]]));
  });
});
