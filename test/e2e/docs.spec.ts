import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { repository } from './program.js';
import { PageSnippets } from './snippets.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Those that are about code; docs-command-line.spec.ts looks after the other. */
const pages = readdirSync(join(repository, 'docs')).filter(
  (file) => file.endsWith('.md') && file !== 'command-line.md',
);

describe.each(pages)('docs/%s', (file) => {
  let page: PageSnippets;
  beforeAll(async () => {
    page = await PageSnippets.compile(`docs/${file}`);
  });
  afterAll(() => page.remove());

  it('has snippets that compile when pasted', () => {
    expect(page.snippets).not.toEqual([]);
    expect(page.complaints).toBe('');
  });

  it('has tests that pass, where it has any', async () => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const tests = page.snippets.filter(({ code }) => code.includes('nestjs-asynq/testing'));
    for (const snippet of tests) await import(pathToFileURL(page.compiled(snippet.file)).href);
    log.mockRestore();
    expect(page.complaints).toBe('');
  });
});
