import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { repository } from './program.js';
import { PageSnippets } from './snippets.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

/** Those that have code. */
const pages = readdirSync(join(repository, 'docs')).filter(
  (file) => file.endsWith('.md') && readFileSync(join(repository, 'docs', file), 'utf8').includes('```ts\n'),
);
const isSpec = ({ file }: { readonly file: string }) => file.endsWith('.spec.ts');
const vitest = join(repository, 'node_modules/vitest/vitest.mjs');

let all: PageSnippets[];
/** What each file of tests has to say, by its path: empty when its tests pass. */
let complaints: ReadonlyMap<string, string>;
beforeAll(async () => {
  all = await PageSnippets.compileAll(pages.map((file) => `docs/${file}`));
  complaints = await runTests(join(all[0]!.folder, 'dist'));
});
afterAll(() => all[0]!.remove());

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[];
  }[];
}

/** All tests of a folder, in one run of Vitest, which takes longer to start than most of them. */
async function runTests(root: string): Promise<Map<string, string>> {
  await writeFile(join(root, 'vitest.config.mjs'), 'export default {};'); // else Vitest takes that of this repository
  const outputFile = join(root, 'report.json');
  const options = ['--testTimeout=60000', '--reporter=json', `--outputFile=${outputFile}`];
  const run = promisify(execFile)(process.execPath, [vitest, 'run', '--root', root, ...options]);
  // One that fails ends with 1, and is in the report.
  const failure = await run.then(
    () => '',
    (error: Error) => String(error),
  );
  const text = await readFile(outputFile, 'utf8').catch(() => {
    throw new Error(`Vitest has made no report: ${failure}`);
  });
  const { testResults } = JSON.parse(text) as Report;
  return new Map(
    testResults.map(({ name, status, message, assertionResults }) => [
      name,
      status === 'passed' ? '' : [message, ...assertionResults.flatMap((one) => one.failureMessages)].join('\n'),
    ]),
  );
}

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
    for (const spec of specs) expect(complaints.get(page.compiled(spec.file)), spec.file).toBe('');
    for (const snippet of parts) await import(pathToFileURL(page.compiled(snippet.file)).href);
    log.mockRestore();
    expect(page.complaints).toBe('');
  });
});
