import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';

/* docs/from-asynq.md, compared with the source of asynq: what it offers has a row. */

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/from-asynq.md'), 'utf8');
let source: Readonly<Record<string, string>>;

beforeAll(() => {
  const cwd = join(import.meta.dirname, 'go');
  execFileSync('go', ['mod', 'download'], { cwd });
  const folder = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', 'github.com/hibiken/asynq'], { cwd });
  const directory = folder.toString().trim();
  const files = readdirSync(directory).filter((file) => file.endsWith('.go') && !file.endsWith('_test.go'));
  source = Object.fromEntries(files.map((file) => [file, readFileSync(join(directory, file), 'utf8')]));
});

const found = (file: string, pattern: RegExp): string[] =>
  [...source[file]!.matchAll(pattern)].map(([, name]) => name!);

const fields = (file: string, struct: string): string[] => {
  const [, body = ''] = new RegExp(`^type ${struct} struct \\{\\n([^]*?)^\\}`, 'm').exec(source[file]!) ?? [];
  return [...body.matchAll(/^\t([A-Z]\w*) /gm)].map(([, name]) => name!);
};

describe('docs/from-asynq.md', () => {
  it.each([
    ['options of a task', 10, () => found('client.go', /^func ([A-Z]\w*)\(.*\) Option \{/gm)],
    ['fields of Config', 20, () => fields('server.go', 'Config')],
    ['methods of the inspector', 40, () => found('inspector.go', /^func \(\w+ \*Inspector\) ([A-Z]\w*)\(/gm)],
    ['options of a list', 2, () => found('inspector.go', /^func ([A-Z]\w*)\(.*\) ListOption \{/gm)],
    ['fields of SchedulerOpts', 5, () => fields('scheduler.go', 'SchedulerOpts')],
    ['methods of the scheduler', 5, () => found('scheduler.go', /^func \(\w+ \*Scheduler\) ([A-Z]\w*)\(/gm)],
    ['methods of the mux', 3, () => found('servemux.go', /^func \(\w+ \*ServeMux\) (Handle|HandleFunc|Use)\(/gm)],
    ['methods of the server', 5, () => found('server.go', /^func \(\w+ \*Server\) ([A-Z]\w*)\(/gm)],
    ['what a context holds', 4, () => found('context.go', /^func ([A-Z]\w*)\(/gm)],
    ['kinds of connections', 3, () => found('asynq.go', /^type (Redis\w+Opt) struct/gm)],
  ])('has all %s', (_, least, read) => {
    const names = read();
    expect(names.length).toBeGreaterThanOrEqual(least);
    const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(page));
    expect(missing).toEqual([]);
  });
});
