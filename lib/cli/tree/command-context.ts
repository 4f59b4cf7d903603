import { homedir } from 'node:os';
import { CommandLineError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { AsynqClient } from '../../client/client.js';
import { explain, isAboutOne } from '../output/failures.js';
import { toJson } from '../output/json.js';
import { withSuggestion } from './known-names.js';
import type { Session } from '../connection/session.js';
import { refuseBraces } from '../../validation.js';
import { type Column, type Screen, renderFields, renderTable } from '../output/table.js';
import { columnsOf, hasColors, type Output, type Terminal } from '../output/terminal.js';
import { plain } from '../output/text.js';

/** Global options as given, anywhere on the line. */
export type GlobalFlags = Readonly<Record<string, unknown>>;

/** What a command works with in one run: its arguments and options, its output and its connections. */
export class CommandContext<Options = object> {
  /** Some part was not done; the command went on with the others. */
  failed = false;
  private opened: Promise<Session> | undefined;

  constructor(
    readonly terminal: Terminal,
    readonly args: readonly string[],
    readonly options: Options,
    private readonly flags: GlobalFlags,
  ) {}

  get now(): number {
    return this.terminal.clock.now();
  }

  /** Writes to standard output. Escape text from Redis with {@link plain}. */
  print(...lines: readonly string[]): void {
    for (const line of lines) this.terminal.stdout.write(`${line}\n`);
  }

  json(value: unknown): void {
    this.print(toJson(value));
  }

  heading(text: string): void {
    this.print(this.screen(this.terminal.stdout).bold(plain(text)));
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    this.print(...renderTable(columns, rows, this.screen(this.terminal.stdout)));
  }

  fields(fields: readonly (readonly [title: string, value: string | number])[]): void {
    this.print(...renderFields(fields, this.screen(this.terminal.stdout)));
  }

  /** Writes one line to standard error: text that is not part of the result. */
  note(text: string): void {
    this.terminal.stderr.write(`${plain(text)}\n`);
  }

  /** Reports that a part was not done. The command goes on and ends with status 1. */
  fail(why: string): void {
    this.failed = true;
    this.note(`error: ${why}`);
  }

  /** Acts on each argument; an error about one does not stop the others. */
  async forEach(args: readonly string[], act: (arg: string) => Promise<void>): Promise<void> {
    for (const arg of args) {
      try {
        await act(arg);
      } catch (error) {
        if (!isAboutOne(error)) throw error;
        this.fail(explain(await withSuggestion(this, error)));
      }
    }
  }

  /** The session that flags, environment and config file describe; opened once. */
  session(): Promise<Session> {
    return (this.opened ??= this.open());
  }

  async inspector(): Promise<AsynqInspector> {
    return (await this.session()).inspector();
  }

  async client(): Promise<AsynqClient> {
    return (await this.session()).client();
  }

  async close(): Promise<void> {
    const session = await this.opened?.catch(() => undefined);
    await session?.close();
  }

  private async open(): Promise<Session> {
    const [{ readConfigFile }, { resolveSettings }, { toConnection }, { Session }] = await Promise.all([
      import('../connection/config-file.js'),
      import('../connection/settings.js'),
      import('../connection/connection.js'),
      import('../connection/session.js'),
    ]);
    const { env, clock } = this.terminal;
    const file = await readConfigFile(this.flags['config'] as string | undefined, env['HOME'] ?? homedir());
    const settings = resolveSettings({ flags: this.flags, env, file });
    const keyPrefix = settings.key_prefix?.value;
    if (keyPrefix === '')
      throw new CommandLineError(`${settings.key_prefix?.origin} is empty; leave it out for "asynq"`);
    if (keyPrefix !== undefined) refuseBraces(keyPrefix, String(settings.key_prefix?.origin), CommandLineError);
    return Session.open({ connection: toConnection(settings), keyPrefix, clock });
  }

  private screen(output: Output): Screen {
    const width = output.isTTY ? columnsOf(output, 80) : Infinity;
    const colors = hasColors(output, this.terminal);
    return { width, bold: (text) => (colors ? `\u001b[1m${text}\u001b[22m` : text) };
  }
}
