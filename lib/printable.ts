/*
 * Names, ids and error messages come from whoever enqueues. In a log or on a terminal they must not
 * begin a line, send an escape sequence or reorder the text around them.
 */

/** Everything Go's `unicode.IsPrint` refuses: controls, formats, spaces other than U+0020. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;
const LONE_SURROGATE = /^\p{Surrogate}$/u;

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
]);

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/** An unprintable character as Go's `%q` writes it: `\n`, `\x1b`; U+FFFD for a lone surrogate. */
export function escapeCharacter(char: string): string {
  const escape = ESCAPES.get(char);
  if (escape !== undefined) return escape;
  if (LONE_SURROGATE.test(char)) return '\ufffd';
  const code = char.codePointAt(0)!;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

/** The text on one line, with every unprintable character escaped. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escapeCharacter);

/** The most characters of an error that are shown: some quote a whole request, and each attempt fails again. */
const MAX_ERROR_LENGTH = 4_096;

/** The beginning of the text of an error, and its length. */
export const shortened = (text: string): string =>
  text.length <= MAX_ERROR_LENGTH ? text : `${text.slice(0, MAX_ERROR_LENGTH)}… (${text.length} characters)`;

/**
 * The stack of an error, {@link shortened}: its message on one line, every further line indented, so
 * that none looks like a line of the log.
 */
export function printableStack(error: Error): string {
  const { message, stack } = error;
  if (typeof stack !== 'string') return printable(shortened(String(message)));
  const start = typeof message === 'string' ? stack.indexOf(message) : -1;
  if (start < 0) return shortened(stack).split('\n').map(indented).join('\n');
  const frames = shortened(stack.slice(start + message.length)).split('\n');
  const head = printable(stack.slice(0, start) + shortened(message) + frames[0]!);
  return [head, ...frames.slice(1).map((line) => indented(line, 1))].join('\n');
}

const indented = (line: string, index: number): string =>
  index === 0 || /^ {4}/.test(line) ? printable(line) : `    ${printable(line)}`;
