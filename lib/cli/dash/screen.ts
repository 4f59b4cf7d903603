import { emitKeypressEvents, type Interface } from 'node:readline';
import { CommandLineError } from '../../errors.js';
import { hasColors, isScreen, type Terminal } from '../output/terminal.js';
import { widthOf } from '../output/text.js';

const ESC = '\u001b[';
/** The alternate screen, no cursor, no line wrapping, bracketed paste. */
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l${ESC}?2004h${ESC}2J`;
const LEAVE = `${ESC}?2004l${ESC}?7h${ESC}?25h${ESC}?1049l`;

/** After this time an escape is the Esc key, and not the start of another key's sequence. */
const ESCAPE_TIMEOUT_MS = 50;

/** @throws CommandLineError without a terminal */
export function requireScreen(terminal: Terminal): void {
  const { stdin, stdout } = terminal;
  if (stdin.isTTY && stdin.setRawMode && isScreen(stdout, terminal)) return;
  throw new CommandLineError(
    'dash needs a terminal for input and output; in scripts use `nestjs-asynq stats --json` and the other commands',
  );
}

export interface ScreenListener {
  onKey(key: string): void;
  onResize(): void;
  /** The terminal was closed. */
  onGone(): void;
}

/** The whole terminal from {@link open} until {@link close}: it emits keys and draws lines. */
export class Screen {
  readonly colors: boolean;
  private shown: readonly string[] = [];
  private isOpen = false;
  private isPasting = false;
  private forget: (() => void) | undefined;

  /** @throws CommandLineError without a terminal */
  constructor(
    private readonly terminal: Terminal,
    private readonly listener: ScreenListener,
  ) {
    requireScreen(terminal);
    this.colors = hasColors(terminal.stdout, terminal);
  }

  get columns(): number {
    return this.terminal.stdout.columns || 80;
  }

  get rows(): number {
    return this.terminal.stdout.rows || 24;
  }

  open(): void {
    const { stdin, stdout } = this.terminal;
    this.forget = this.terminal.onEnd(() => this.close());
    this.isOpen = true;
    stdin.setRawMode!(true);
    // Only the timeout of an escape is read of the interface.
    emitKeypressEvents(stdin as NodeJS.ReadStream, { escapeCodeTimeout: ESCAPE_TIMEOUT_MS } as unknown as Interface);
    stdin.on('keypress', this.onKeypress).on('end', this.onEnd);
    stdout.on('resize', this.onResize);
    stdin.resume();
    stdout.write(ENTER);
  }

  /** Draws the lines; writes only changed ones, in one write. */
  draw(lines: readonly string[]): void {
    if (!this.isOpen) return;
    const changed = lines.flatMap((line, row) => (line === this.shown[row] ? [] : [this.put(line, row)]));
    this.shown = lines;
    if (changed.length > 0) this.terminal.stdout.write(changed.join(''));
  }

  /** Erases the rest of the line. On a full line that would erase its last character. */
  private put(line: string, row: number): string {
    const erase = widthOf(line) < this.columns ? `${ESC}K` : '';
    return `${ESC}${row + 1};1H${line}${ESC}0m${erase}`;
  }

  /** Restores the terminal. Idempotent. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    const { stdin, stdout } = this.terminal;
    stdout.write(LEAVE);
    stdin.setRawMode!(false);
    stdin.off('keypress', this.onKeypress).off('end', this.onEnd);
    stdout.off('resize', this.onResize);
    stdin.pause();
    this.forget?.();
  }

  private readonly onKeypress = (_text: string | undefined, key: Keypress): void => {
    if (key.name === 'paste-start') this.isPasting = true;
    // A letter in pasted text must not delete anything.
    else if (key.name === 'paste-end') this.isPasting = false;
    else if (!this.isPasting) this.listener.onKey(nameKey(key));
  };

  /** The terminal may have moved lines: everything is drawn again. */
  private readonly onResize = (): void => {
    this.shown = [];
    this.terminal.stdout.write(`${ESC}2J`);
    this.listener.onResize();
  };

  private readonly onEnd = (): void => this.listener.onGone();
}

interface Keypress {
  readonly sequence?: string;
  readonly name?: string | undefined;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
}

/** A character, or the name of a key: `enter`, `up`, `ctrl-c`; for keys without meaning here, a name that nothing uses. */
function nameKey({ sequence = '', name = '', ctrl, meta }: Keypress): string {
  if (ctrl) return `ctrl-${name}`;
  if (name === 'return' || name === 'enter') return 'enter';
  if (name === 'escape' || name === 'backspace' || name === 'space') return name;
  if (meta) return `meta-${name}`;
  return [...sequence].length === 1 && sequence >= ' ' ? sequence : name;
}
