import type { Clock } from '../clock.js';

export interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Input extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
  /** Keys come one by one, as they are; Ctrl-C, too, is a key then. */
  setRawMode?(isRaw: boolean): unknown;
}

/** What the command line needs of the process it runs in: the real one, or that of a test. */
export interface Terminal {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Of this package. */
  readonly version: string;
  /**
   * Fires at the first Ctrl-C, for work that stops between two steps. Until somebody has asked for it, Ctrl-C ends the process at
   * once; the second one always does.
   */
  interruption(): AbortSignal;
  /**
   * Calls back, once, when the process is about to end, for whatever reason but SIGKILL: what was done to the terminal is
   * undone. The returned function takes it back.
   */
  onEnd(undo: () => void): () => void;
}

/** Columns of a terminal; some do not know their size, and say 0. */
export const columnsOf = (output: Output, otherwise: number): number => output.columns || otherwise;

/** Whether it is a terminal that understands escape sequences. */
export const isScreen = (output: Output, { env }: Terminal): boolean => output.isTTY === true && env['TERM'] !== 'dumb';

/** https://no-color.org: set to anything but nothing. */
export const hasColors = (output: Output, terminal: Terminal): boolean =>
  isScreen(output, terminal) && !terminal.env['NO_COLOR'];
