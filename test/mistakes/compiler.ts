import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mistake, type Mistake } from './mistake.js';

const repository = join(import.meta.dirname, '../..');
const TSC = join(repository, 'node_modules/typescript-7/bin/tsc');

const BEGINNING = `
import { type AsynqClient, type AsynqScheduler, defineTask, OnTaskEvent, Payload, type TaskContext, TaskHandler } from 'nestjs-asynq';
declare const asynq: AsynqClient;
declare const scheduler: AsynqScheduler;
interface Data { userId: number }
const Mail = defineTask<Data, string>('mail');
void [asynq, scheduler, Mail, OnTaskEvent, Payload, TaskHandler];
`;

const method = (text: string): string => `export class Mails { @TaskHandler(Mail) ${text} }`;

const WRONG: readonly (readonly [wrong: string, code: string])[] = [
  ['`enqueue(Mail)`', 'void asynq.enqueue(Mail);'],
  ["`enqueue(Mail, { userId: '7' })`", "void asynq.enqueue(Mail, { userId: '7' });"],
  ['`enqueue(Mail, data, { delay: 5000 })`', 'void asynq.enqueue(Mail, { userId: 7 }, { delay: 5000 });'],
  ["`enqueue('mail', data, { attempts: 3 })`", "void asynq.enqueue('mail', { userId: 7 }, { attempts: 3 });"],
  ["`scheduler.register('@daily', Mail)`", "scheduler.register('@daily', Mail);"],
  ["`defineTask('mail', { timeout: '5 minutes' })`", "defineTask('mail', { timeout: '5 minutes' });"],
  ["`defineTask('mail', { timeout: '10' })`", "defineTask('mail', { timeout: '10' });"],
  [
    "`const options = { timeout: '5m' }; enqueue(Mail, data, options)`",
    "const options = { timeout: '5m' };\nvoid asynq.enqueue(Mail, { userId: 7 }, options);",
  ],
  ["`defineTask<{ rates: Map<string, number> }>('mail')`", "defineTask<{ rates: Map<string, number> }>('mail');"],
  ["`defineTask<{ done: () => void }>('mail')`", "defineTask<{ done: () => void }>('mail');"],
  [
    "`defineTask<{ price: Money }>('mail')`, where Money has a private field",
    "class Money { constructor(private readonly cents: number) {} get all() { return this.cents } }\ndefineTask<{ price: Money }>('mail');",
  ],
  ['`@TaskHandler(Mail) send(data: { to: string })`', method('send(data: { to: string }) { return data.to }')],
  [
    "`@TaskHandler(Mail) send(@Payload('userId') to: Date)`",
    method("send(@Payload('userId') to: Date) { return String(to) }"),
  ],
  [
    "`@TaskHandler(Mail) send(@Payload(Mail, 'usrId') id: number)`",
    method("send(@Payload(Mail, 'usrId') id: number) { return String(id) }"),
  ],
  [
    "`@TaskHandler(Mail) send(@Payload(Mail, 'userId') id: string)`, which is a number",
    method("send(@Payload(Mail, 'userId') id: string) { return id }"),
  ],
  [
    "`@OnTaskEvent('failed') failed(task: TaskContext, error: Error)`",
    "export class Mails { @OnTaskEvent('failed') failed(task: TaskContext, error: Error) { void [task, error] } }",
  ],
  ['`@TaskHandler(Mail) send()` that returns nothing', method('send(data: Data) { void data }')],
];

const OPTIONS = {
  compilerOptions: {
    target: 'ES2023',
    module: 'nodenext',
    strict: true,
    experimentalDecorators: true,
    skipLibCheck: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(repository, 'node_modules/@types')],
    paths: { 'nestjs-asynq': [join(repository, 'lib/index.ts')] },
  },
  include: ['*.ts'],
};

let reports: Promise<readonly string[]> | undefined;

/** What the compiler says to each, in one run. */
async function compileAll(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'asynq-mistakes-'));
  try {
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(OPTIONS));
    for (const [index, [, code]] of WRONG.entries()) await writeFile(join(folder, `m${index}.ts`), BEGINNING + code);
    const output = await new Promise<string>((resolve) => {
      execFile(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], (_, stdout) => resolve(stdout));
    });
    return WRONG.map((_, index) => reportOf(`m${index}.ts`, output));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The first report about a file, in one line, without its place. */
function reportOf(file: string, output: string): string {
  const lines = output.split('\n');
  const first = lines.findIndex((line) => line.includes(`${file}(`));
  if (first < 0) throw new Error(`${file} compiles:\n${output}`);
  const next = lines.findIndex((line, index) => index > first && !line.startsWith(' '));
  const [head = '', ...rest] = lines.slice(first, next);
  return [head.replace(/^.*?error TS\d+: /, ''), ...rest.map((line) => line.trim())].join(' ');
}

/** What does not compile. */
export const COMPILER: readonly Mistake[] = WRONG.map(([wrong], index) =>
  mistake(wrong, async () => {
    reports ??= compileAll();
    return (await reports)[index];
  }),
);
