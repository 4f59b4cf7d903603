import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { InvalidTaskError } from '../../lib/errors.js';

const root = join(import.meta.dirname, '../..');
const docs = (page: string) => readFileSync(join(root, 'docs', page), 'utf8');

it('has every option in docs/options.md as its docstring has it (node scripts/options-page.mjs writes it)', async () => {
  const { optionsPage } = (await import(join(root, 'scripts/options-page.mjs'))) as { optionsPage(): Promise<string> };
  expect(docs('options.md')).toBe(await optionsPage());
});

it('has every code of an error in docs/troubleshooting.md (node scripts/error-codes.mjs writes it)', async () => {
  const script = (await import(join(root, 'scripts/error-codes.mjs'))) as { troubleshootingPage(): Promise<string> };
  expect(docs('troubleshooting.md')).toBe(await script.troubleshootingPage());
});

it('prints the code of an error, as docs/troubleshooting.md says', () => {
  expect(inspect(new InvalidTaskError('no'))).toContain("code: 'ASYNQ_INVALID_TASK'");
});
