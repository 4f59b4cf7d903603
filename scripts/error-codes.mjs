/*
 * Writes the part of docs/troubleshooting.md that has every error by its code, from the classes and their docstrings.
 * test/unit/generated-pages.spec.ts fails when it is out of date.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatted } from './formatted.mjs';

const root = join(import.meta.dirname, '..');
export const TROUBLESHOOTING = join(root, 'docs/troubleshooting.md');

const CLASS = /\/\*\*((?:(?!\*\/)[^])*)\*\/\s*export class (\w+)[^{]*\{\s*readonly code = '(ASYNQ_\w+)'/g;
const CODE = /readonly code = 'ASYNQ_/g;

function errors() {
  const folder = join(root, 'lib');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const found = files.flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8');
    const classes = [...text.matchAll(CLASS)];
    if (classes.length !== (text.match(CODE) ?? []).length) throw new Error(`an error of lib/${file} has no docstring`);
    return classes.map(([, says, name, code]) => ({
      name,
      code,
      says: says.replaceAll(/\s*\n?\s*\* ?|\s+/g, ' ').trim(),
    }));
  });
  return found.toSorted((one, other) => (one.code < other.code ? -1 : 1));
}

/** The text of the page, with that part as it has to be. */
export async function troubleshootingPage() {
  const entries = errors().map(({ name, code, says }) => `### ${code}\n\n\`${name}\`. ${says}`);
  const page = readFileSync(TROUBLESHOOTING, 'utf8');
  const marks = /(<!-- codes -->)[^]*?(<!-- \/codes -->)/;
  if (!marks.test(page)) throw new Error('docs/troubleshooting.md has no place for the codes');
  const text = page.replace(marks, (_, begin, end) => `${begin}\n\n${entries.join('\n\n')}\n\n${end}`);
  return formatted(TROUBLESHOOTING, text);
}

if (process.argv[1] === import.meta.filename) writeFileSync(TROUBLESHOOTING, await troubleshootingPage());
