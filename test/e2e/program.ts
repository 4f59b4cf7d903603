import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../..', import.meta.url));

export interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program started as in a terminal of its own, with its output so far. */
export class Program {
  stdout = '';
  stderr = '';
  /** Resolves when the process has ended and all its output has arrived. */
  readonly ended: Promise<End>;
  private readonly child: ChildProcess;
  private readonly listeners = new Set<() => void>();
  private end: End | undefined;

  /** Its standard input is open: see `type`. */
  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = repository) {
    this.child = spawn(command, args, {
      cwd,
      // Only the part of the test runner's environment that a login shell also has.
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NO_COLOR: '1', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true, // a process group, as for each command in a terminal
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      this.notify();
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code, signal) => {
        this.end = { code, signal };
        this.notify();
        resolve(this.end);
      });
    });
  }

  /** What it says on stderr, but for what each program says on a machine that has not let it run for a second. */
  get complaints(): string {
    return this.stderr.replaceAll(/^.*The event loop stood still for .*\n/gm, '');
  }

  /** All output, for messages. */
  get output(): string {
    return `${this.stdout}\n${this.stderr}`;
  }

  /** Resolves with the first match in the standard output; rejects if the program ends without one. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const match = pattern.exec(this.stdout);
        if (!match && !this.end) return;
        this.listeners.delete(check);
        if (match) resolve(match);
        else reject(new Error(`the program ended without ${pattern}:\n${this.output}`));
      };
      this.listeners.add(check);
      check();
    });
  }

  /** A line that somebody types. */
  type(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  /** kill -9 of every process of the group. */
  kill(): Promise<End> {
    process.kill(-this.child.pid!, 'SIGKILL');
    return this.ended;
  }

  /** Ctrl-C in a terminal: every process of the group gets it. */
  interrupt(): void {
    process.kill(-this.child.pid!, 'SIGINT');
  }

  /** SIGTERM to this process alone. */
  terminate(): void {
    this.child.kill('SIGTERM');
  }

  /** Kills the rest of the process group, at the end of a test. */
  async destroy(): Promise<void> {
    try {
      process.kill(-this.child.pid!, 'SIGKILL');
    } catch {
      // Nothing is left.
    }
    await this.ended;
  }

  private notify(): void {
    for (const listener of Array.from(this.listeners)) listener();
  }
}

/** The programs of a test file; `destroy` ends all of them. */
export class Programs {
  private readonly all: Program[] = [];

  start(command: string, args: readonly string[], env?: NodeJS.ProcessEnv, cwd?: string): Program {
    const program = new Program(command, args, env, cwd);
    this.all.push(program);
    return program;
  }

  npm(args: readonly string[], env?: NodeJS.ProcessEnv): Program {
    return this.start('npm', args, env);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.all.splice(0).map((program) => program.destroy()));
  }
}
