import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { repository } from './program.js';
import { PageSnippets } from './snippets.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Those that have code. */
const pages = readdirSync(join(repository, 'docs')).filter(
  (file) => file.endsWith('.md') && readFileSync(join(repository, 'docs', file), 'utf8').includes('```ts\n'),
);
const isSpec = ({ file }: { readonly file: string }) => file.endsWith('.spec.ts');
const vitest = join(repository, 'node_modules/vitest/vitest.mjs');

let all: PageSnippets[];
beforeAll(async () => {
  all = await PageSnippets.compileAll(pages.map((file) => `docs/${file}`));
});
afterAll(() => all[0]!.remove());

describe.each(pages)('docs/%s', (file) => {
  let page: PageSnippets;
  beforeAll(() => {
    page = all[pages.indexOf(file)]!;
  });

  it('has snippets that compile when pasted', () => {
    expect(page.snippets).not.toEqual([]);
    expect(page.complaints).toBe('');
  });

  it('has tests that pass, where it has any', async () => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const tests = page.snippets.filter(({ code }) => code.includes('nestjs-asynq/testing'));
    const [specs, parts] = [tests.filter(isSpec), tests.filter((snippet) => !isSpec(snippet))];
    if (specs.length > 0) {
      const root = dirname(page.compiled(specs[0]!.file));
      // Else Vitest takes that of this repository. A reader's machine needs no such time, a busy one does.
      await writeFile(join(root, 'vitest.config.mjs'), 'export default { test: { testTimeout: 60_000 } };');
      await promisify(execFile)(process.execPath, [vitest, 'run', '--root', root]);
    }
    for (const snippet of parts) await import(pathToFileURL(page.compiled(snippet.file)).href);
    log.mockRestore();
    expect(page.complaints).toBe('');
  });
});
