import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { Pipe } from './pipe.js';
import { Program, Programs, repository } from './program.js';

vi.setConfig({ testTimeout: 90_000 });

const programs = new Programs();
const servers: RedisProcess[] = [];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'asynq-quickstart-'));
});
afterAll(async () => {
  await programs.destroy();
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
});

/** A folder with these files, and what a survey passes over. */
async function folderOf(name: string, files: Record<string, string>): Promise<string> {
  const all = { ...files, '.hidden/no.txt': 'no', 'node_modules/no.txt': 'no' };
  for (const [file, text] of Object.entries(all)) {
    const path = join(folder, name, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  return join(folder, name);
}

/** One task at a time, on a Redis of its own. */
async function oneAtATime(): Promise<NodeJS.ProcessEnv> {
  const server = await startRedis();
  servers.push(server);
  return { REDIS_URL: server.url, CONCURRENCY: '1' };
}

async function startWorker(env: NodeJS.ProcessEnv): Promise<{ worker: Program; pid: number }> {
  const worker = programs.npm(['start', '--', '--worker'], env);
  const [, pid] = await worker.until(/^process (\d+) waits for work; Ctrl-C ends it$/m);
  return { worker, pid: Number(pid) };
}

/** The numbers and the digest in the row of the result table. */
function rowOf(program: Program, file: string): string[] | undefined {
  const rows = [...program.stdout.matchAll(/^ +(\d+) +(\d+) +(\d+)  (\w{12})  (.*)$/gm)];
  return rows.find(([, , , , , path]) => path!.endsWith(file))?.slice(1, 5);
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12);

/** How many files each process measured, by process id. */
const sharesOf = (program: Program): Map<number, number> =>
  new Map(
    [...program.stdout.matchAll(/^process (\d+) measured (\d+)$/gm)].map(([, pid, count]) => [
      Number(pid),
      Number(count),
    ]),
  );

// The programs mostly start and wait, so the tests run side by side.
describe.concurrent('npm start', () => {
  it('measures the files of the repository, retries a step and delays another', async () => {
    const program = programs.npm(['start']);
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    const [, count] = await program.until(/^(\d+) files, one task each, in memory$/m);
    expect(Number(count)).toBeGreaterThan(300);
    expect([...sharesOf(program).values()]).toEqual([Number(count)]);
    expect(rowOf(program, 'package-lock.json')).toBeDefined();
    expect(program.stdout).toContain(`report:publish: a report on ${count} files (attempt 3)`);
    const goodbye = /^greeting:goodbye: goodbye \w+, ([\d.]+) s after it was enqueued \(attempt 1\)$/m;
    expect(Number((await program.until(goodbye))[1])).toBeGreaterThanOrEqual(1);
  });

  it('counts what the files and folders named hold, and writes nothing else into a pipe', async () => {
    const texts = { 'a.txt': 'one two\n three\n', 'b/c.md': 'no newline', 'b/empty.md': '', 'b/dä.txt': 'ä\tö\r\n' };
    const named = await folderOf('named', { ...texts, 'other/e.txt': 'not named' });
    const program = programs.npm(['--silent', 'start', '--', join(named, 'b'), join(named, 'a.txt')]);
    expect(await program.ended, program.output).toEqual({ code: 0, signal: null });
    expect(rowOf(program, 'named/a.txt')).toEqual(['2', '3', '15', digest(texts['a.txt'])]);
    expect(rowOf(program, 'named/b/c.md')).toEqual(['0', '2', '10', digest(texts['b/c.md'])]);
    expect(rowOf(program, 'named/b/empty.md')).toEqual(['0', '0', '0', digest('')]);
    expect(rowOf(program, 'named/b/dä.txt')).toEqual(['1', '2', '7', digest(texts['b/dä.txt'])]);
    expect(program.stdout).toContain('4 files: 3 lines, 7 words, 32 bytes');
    expect(program.stdout).toMatch(/^4 files, one task each, in memory\n +lines +words +bytes  sha256 +file\n/);
    const retries = program.complaints.trim().split('\n');
    expect(retries).toHaveLength(2);
    for (const line of retries) expect(line).toMatch(/^warning: Task report:publish .*: the printer is on fire$/);
  });

  it('ends with 1 when a file cannot be measured, and measures the others', async () => {
    const some = await folderOf('some', { 'a.txt': 'a', 'b.txt': 'b' });
    const missing = join(some, 'missing.txt');
    const program = programs.npm(['start', '--', some, missing]);
    expect(await program.ended, program.output).toEqual({ code: 1, signal: null });
    expect([...sharesOf(program).values()]).toEqual([2]);
    expect(program.stderr).toContain(`file:measure {"path":"${missing}"} failed: no such file: ${missing}`);
    expect(program.stdout).toContain('report:publish: a report on 2 files (attempt 3)');
  });

  it('shares the work with a worker, and loses nothing when that gets SIGTERM in the middle of a task', async () => {
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${n}.txt`, `file ${n}\n`]));
    const regular = await folderOf('shared', files);
    const pipes = ['first', 'second'].map((name) => new Pipe(join(folder, name)));
    const env = await oneAtATime();
    const { worker, pid } = await startWorker(env);
    const survey = programs.npm(['start', '--', ...pipes.map(({ path }) => path), regular], env);
    // Each process runs one task at a time: when both pipes are read, both processes are in the middle of one.
    await Promise.all(pipes.map((pipe) => pipe.untilRead(60_000)));
    process.kill(pid, 'SIGTERM');
    await worker.until(/Stopped fetching; 1 task still running/);
    for (const pipe of pipes) await pipe.write('from a pipe\n');

    expect(await worker.ended, worker.output).toEqual({ code: 0, signal: null });
    expect(worker.stdout.match(/^file:measure \S+ completed in /gm)).toHaveLength(1);
    expect(worker.stdout).toMatch(/Server closed$/m);
    expect(await survey.ended, survey.output).toEqual({ code: 0, signal: null });
    expect(survey.stdout).toContain('32 files, one task each, on Redis');
    expect(survey.stdout).toContain('32 files: 32 lines, 66 words, ');
    expect(sharesOf(survey).size).toBe(2);
    expect(sharesOf(survey).get(pid)).toBe(1);
  });

  it('ends a worker with Ctrl-C', async () => {
    const { worker } = await startWorker(await oneAtATime());
    worker.interrupt();
    await worker.ended; // npm tells of the signal or of its program's 0, as its shell has it
    expect(worker.stdout).toMatch(/Server closed$/m);
  });

  it('says what is wrong when Redis does not answer', async () => {
    const program = programs.npm(['start', '--', 'lua'], { REDIS_URL: 'redis://127.0.0.1:1' });
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr).toMatch(/^BrokerUnavailableError: .*ECONNREFUSED 127\.0\.0\.1:1$/m);
  });

  it('does not pretend that tasks in memory can be shared', async () => {
    const program = programs.start(process.execPath, [
      `${repository}/sample/start.mjs`,
      '01-quickstart/main',
      '--worker',
    ]);
    expect(await program.ended).toEqual({ code: 1, signal: null });
    expect(program.stderr).toContain('a worker needs REDIS_URL');
  });
});
