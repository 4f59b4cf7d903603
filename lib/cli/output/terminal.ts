import type { Clock } from '../../clock.js';

export interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Input extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
  /** In raw mode each key arrives at once, Ctrl-C included. */
  setRawMode?(isRaw: boolean): unknown;
}

/** What the command line needs of its process: the real one, or a test's. */
export interface Terminal {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The version of this package. */
  readonly version: string;
  /**
   * A signal that the first Ctrl-C aborts, for work that can stop between two steps. Before the first call Ctrl-C ends the
   * process at once; a second Ctrl-C always does.
   */
  interruption(): AbortSignal;
  /**
   * Calls `undo` once before the process ends for any reason but SIGKILL, to restore the terminal. The returned function
   * removes the callback.
   */
  onEnd(undo: () => void): () => void;
}

/** Columns of a terminal. Terminals that do not know their size report 0. */
export const columnsOf = (output: Output, otherwise: number): number => output.columns || otherwise;

/** Whether it is a terminal that understands escape sequences. */
export const isScreen = (output: Output, { env }: Terminal): boolean => output.isTTY === true && env['TERM'] !== 'dumb';

/** See https://no-color.org: any non-empty value turns colors off. */
export const hasColors = (output: Output, terminal: Terminal): boolean =>
  isScreen(output, terminal) && !terminal.env['NO_COLOR'];
