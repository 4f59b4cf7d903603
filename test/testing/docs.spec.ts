import { readFileSync } from 'node:fs';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { expect, it } from 'vitest';

/** Compiles only when no member is missing. */
const MEMBERS: Readonly<Record<keyof AsynqTester, true>> = {
  enqueued: true,
  waiting: true,
  uncommitted: true,
  archived: true,
  completed: true,
  all: true,
  drain: true,
  advance: true,
  drainWhile: true,
  crashAfter: true,
  work: true,
  explain: true,
  transaction: true,
  clock: true,
  clear: true,
};

it('docs/testing.md has every member of the tester in its table', () => {
  const page = readFileSync(new URL('../../docs/testing.md', import.meta.url), 'utf8');
  const table = page.slice(page.indexOf('| member'));
  const rows = [...table.slice(0, table.indexOf('\n\n')).matchAll(/^\| `(\w+)/gm)].map(([, name]) => name);
  expect(rows).toEqual(Object.keys(MEMBERS));
});
