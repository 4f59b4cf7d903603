import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
// @ts-expect-error -- a script without types
import { formatted } from '../../scripts/formatted.mjs';
import { FOREIGN_OPTIONS, PAYLOADS, VALUES } from './calls.js';
import { COMPILER } from './compiler.js';
import { HANDLERS, MODULE } from './declarations.js';
import type { Mistake } from './mistake.js';
import { FAILURES, LOG } from './running.js';

const PAGE = join(import.meta.dirname, '../../docs/troubleshooting.md');

/** The tables of the page, by the names in its comments. */
const TABLES: Readonly<Record<string, readonly Mistake[]>> = {
  compiler: COMPILER,
  options: FOREIGN_OPTIONS,
  values: VALUES,
  payloads: PAYLOADS,
  module: MODULE,
  handlers: HANDLERS,
  failures: FAILURES,
  log: LOG,
};

const cell = (text: string): string =>
  text
    .replaceAll('|', String.raw`\|`)
    .replaceAll('*', String.raw`\*`)
    .replaceAll('<', '&lt;');

async function tableOf(mistakes: readonly Mistake[]): Promise<string> {
  const rows: string[] = [];
  for (const { wrong, says } of mistakes) rows.push(`| ${wrong} | ${cell(String(await says()))} |`);
  return ['| mistake | what you read |', '| --- | --- |', ...rows].join('\n');
}

describe('docs/troubleshooting.md', () => {
  it('tells what each mistake is answered with (vitest -u writes it)', async () => {
    let page = await readFile(PAGE, 'utf8');
    for (const [name, mistakes] of Object.entries(TABLES)) {
      const table = await tableOf(mistakes);
      const marks = new RegExp(`(<!-- ${name} -->)[^]*?(<!-- /${name} -->)`);
      expect(page).toMatch(marks);
      page = page.replace(marks, (_, begin: string, end: string) => `${begin}\n\n${table}\n\n${end}`);
    }
    await expect(await formatted(PAGE, page)).toMatchFileSnapshot(PAGE);
  });

  it('has at least 60 of them', () => {
    expect(Object.values(TABLES).flat().length).toBeGreaterThanOrEqual(60);
  });
});
