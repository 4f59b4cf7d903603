import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Programs } from './program.js';
import { PageSnippets } from './snippets.js';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Puts the time before each piece of output. */
const STAMP = `const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text, ...rest) => write(Date.now() + ' ' + text, ...rest);`;

describe('the README', () => {
  const programs = new Programs();
  let page: PageSnippets;

  beforeAll(async () => {
    page = await PageSnippets.compile('README.md');
    await writeFile(join(page.folder, 'stamp.mjs'), STAMP);
  });
  afterAll(async () => {
    await programs.destroy();
    await page.remove();
  });

  it('has programs that compile when pasted', () => {
    expect(page.snippets.map(({ file }) => file)).toEqual(expect.arrayContaining(['app.module.ts', 'main.ts']));
    expect(page.snippets.some(({ code }) => code.includes('nestjs-asynq/testing'))).toBe(true);
    expect(page.complaints).toBe('');
  });

  it('has a quickstart that runs its task after a second, without Redis, and ends with SIGTERM', async () => {
    const program = programs.start(process.execPath, [
      '--import',
      join(page.folder, 'stamp.mjs'),
      page.compiled('main.ts'),
    ]);
    const [, started] = await program.until(
      /^(\d+) .*Server started: concurrency 50, queues critical=6 default=3 low=1/m,
    );
    const [, ran] = await program.until(/^(\d+) mail to user 42$/m);
    expect(Number(ran) - Number(started)).toBeGreaterThanOrEqual(1_000);
    program.terminate();
    expect(await program.ended, program.output).toEqual({ code: null, signal: 'SIGTERM' }); // Nest's own way
    expect(program.stdout).toMatch(/Server closed$/m);
    expect(program.stdout.match(/mail to user/g)).toHaveLength(1);
    expect(program.complaints).toBe('');
  });

  it('has a test that passes', async () => {
    const { file } = page.snippets.find(({ code }) => code.includes('nestjs-asynq/testing'))!;
    const log = vi.spyOn(console, 'log').mockReturnValue();
    await import(pathToFileURL(page.compiled(file)).href); // here, so that its `expect` is ours
    expect(log.mock.calls).toEqual([['mail to user 42']]);
  });
});
