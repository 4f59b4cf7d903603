import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { vi } from 'vitest';

const PROMPT = 'ready$';

export interface ScreenOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * A real terminal with a shell in it: a tmux server of its own, driven by keys and read like a
 * screen.
 */
export class Screen {
  /**
   * Command lines so far: what the last one has left on the screen must not be taken for the end of
   * the next.
   */
  private lines = 0;

  private constructor(private readonly socket: string) {}

  /** Resolves when the shell waits for input. */
  static async open({ columns = 100, rows = 30, env = {} }: ScreenOptions = {}): Promise<Screen> {
    const screen = new Screen(`asynq-${randomUUID()}`);
    const variables = { PATH: process.env['PATH'] ?? '', HOME: '/nowhere', LANG: 'C.UTF-8', PS1: `${PROMPT} `, ...env };
    const shell = ['env', '-i', 'TERM=screen-256color', ...Object.entries(variables).map(([k, v]) => `${k}=${v}`)];
    const size = ['-x', String(columns), '-y', String(rows)];
    await screen.tmux('new-session', '-d', ...size, ...shell, 'bash', '--noprofile', '--norc');
    await screen.until((text) => text.trimEnd().endsWith(PROMPT));
    return screen;
  }

  /** Types text as it is. */
  async type(text: string): Promise<void> {
    await this.tmux('send-keys', '-l', text);
  }

  /** Presses keys by their tmux names: `Enter`, `C-c`, `Tab`. */
  async press(...keys: string[]): Promise<void> {
    await this.tmux('send-keys', ...keys);
  }

  /** The visible text, without trailing space in each line. */
  async text(): Promise<string> {
    return this.tmux('capture-pane', '-p');
  }

  /** {@link text} with the escape sequences for its styles. */
  async styledText(): Promise<string> {
    return this.tmux('capture-pane', '-p', '-e');
  }

  /**
   * What programs may leave behind: the other screen, a hidden cursor, lines that do not wrap, and
   * all that stty knows.
   */
  async modes(): Promise<string> {
    const modes = await this.tmux('display-message', '-p', '#{alternate_on} #{cursor_flag} #{wrap_flag}');
    const { output } = await this.run('stty -g');
    return modes + output.replaceAll('\n', ''); // a narrow screen breaks the line
  }

  /** The program that runs in the shell. */
  async program(): Promise<number> {
    const shell = await this.tmux('display-message', '-p', '#{pane_pid}');
    const { stdout } = await promisify(execFile)('pgrep', ['-P', shell.trim()]);
    return Number(stdout.trim());
  }

  /** Resolves with the text once it matches. A screen has no event for changes, so this polls. */
  until(isThere: (text: string) => boolean, timeout = 30_000): Promise<string> {
    const look = async (): Promise<string> => {
      const text = await this.text();
      if (!isThere(text)) throw new Error(`the screen never looked as expected; it ended as\n${text}`);
      return text;
    };
    return vi.waitFor(look, { timeout, interval: 15 });
  }

  /**
   * Runs a command line on a cleared screen; resolves with what it wrote (as shown) and its status.
   */
  async run(line: string): Promise<{ output: string; status: number }> {
    await this.start(line);
    return this.finish();
  }

  /** Begins a command line on a cleared screen. */
  async start(line: string): Promise<void> {
    await this.type(`clear; ${line}; echo "[status $? of ${++this.lines}]"`);
    await this.press('Enter');
  }

  /** Waits until the program that {@link start} began has ended. */
  async finish(): Promise<{ output: string; status: number }> {
    const end = new RegExp(`^([^]*?)\\[status (\\d+) of ${this.lines}\\]$`, 'm');
    const [, output, status] = end.exec(await this.until((text) => end.test(text)))!;
    return { output: output!, status: Number(status) };
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  async close(): Promise<void> {
    await this.tmux('kill-server');
  }

  private async tmux(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('tmux', ['-u', '-L', this.socket, '-f', '/dev/null', ...args]);
    return stdout;
  }
}
