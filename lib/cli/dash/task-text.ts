import { toDate } from '../../clock.js';
import type { TaskDetails } from '../../task/info.js';
import { enqueuedAtOf } from '../../task/task-id.js';
import { padEnd, plain, widthOf } from '../output/text.js';
import { crashesInWords } from '../output/words.js';
import { formatTime } from '../../words/when.js';
import { formatBytes } from '../../words/bytes.js';
import { formatCount, formatDistance, formatSpan, textOf } from './format.js';
import { bodyHeight, type Model, type TaskView } from './model.js';
import { prettyJson } from './pretty-json.js';
import { type Line, lineOf } from './styled-line.js';
import { STATE_STYLES } from './state-styles.js';

/** How much of a payload or result is shown as text, and as a hex dump. */
const MAX_TEXT_BYTES = 32_768;
const MAX_DUMP_BYTES = 2_048;

const MARGIN = '  ';

/** All lines about a task. */
export function taskLines(task: TaskDetails, columns: number, now: number): Line[] {
  const lines = linesOf(task, columns - MARGIN.length, now);
  return lines.map(({ segments }) => ({ segments: [{ text: MARGIN }, ...segments] }));
}

function linesOf(task: TaskDetails, width: number, now: number): Line[] {
  const fields = fieldsOf(task, now).filter(([, value]) => value !== '');
  const widest = Math.max(...fields.map(([title]) => title.length)) + 2;
  return [
    ...fields.flatMap(([title, value]) => field(title, value, title === 'State' ? task : undefined, widest, width)),
    ...section('Headers', headersOf(task), width),
    ...section('Last error', wrap(task.lastErr, width), width, true),
    ...section(`Payload${sizeOf(task.payload)}`, bytesLines(task.payload, width), width),
    ...section(`Result${sizeOf(task.result)}`, bytesLines(task.result, width), width),
  ];
}

/** The first line on the screen: as near to the wanted one as the number of lines allows. */
export function clampScroll({ task }: TaskView, model: Model, wanted: number): number {
  const count = taskLines(task, model.columns, model.now).length;
  return Math.max(0, Math.min(wanted, count - bodyHeight(model)));
}

function fieldsOf(task: TaskDetails, now: number): (readonly [title: string, value: string])[] {
  const { completedAt, retention } = task;
  const expiry = completedAt && toDate(completedAt.getTime() + retention);
  return [
    ['ID', task.id],
    ['Type', task.type],
    ['Queue', task.queue],
    ['State', task.isOrphaned ? `${task.state}, orphaned: its server is gone` : task.state],
    ['Group', task.group],
    ['Enqueued', moment(enqueuedAtOf(task.id), now)],
    ['Next process', task.state === 'pending' ? '' : moment(task.nextProcessAt, now)],
    ['Pending since', moment(task.pendingSince, now)],
    ['Retried', `${task.retried} of ${task.maxRetry}`],
    ['Crashes', crashesInWords(task)],
    ['Last failure', moment(task.lastFailedAt, now)],
    ['Timeout', task.timeout ? formatSpan(task.timeout) : ''],
    ['Deadline', moment(task.deadline, now)],
    ['Retention', retention ? formatSpan(retention) : ''],
    ['Completed', moment(completedAt, now)],
    ['Expires', moment(expiry, now)],
  ];
}

const moment = (time: Date | undefined, now: number): string =>
  time === undefined ? '' : `${formatTime(time)} (${formatDistance(time, now)})`;

function field(title: string, value: string, task: TaskDetails | undefined, widest: number, width: number): Line[] {
  const style = task && STATE_STYLES[task.state];
  return wrap(value, Math.max(1, width - widest)).map((text, index) => ({
    segments: [
      { text: padEnd(index === 0 ? title : '', widest), style: 'dim' },
      { text, style },
    ],
  }));
}

/** A headed section; nothing without lines. */
function section(title: string, lines: readonly string[], width: number, isBad = false): Line[] {
  if (lines.length === 0) return [];
  const rule = '─'.repeat(Math.max(0, Math.min(width - 1, 72) - widthOf(title) - 1));
  const head: Line = {
    segments: [
      { text: title, style: 'strong' },
      { text: ` ${rule}`, style: 'dim' },
    ],
  };
  return [lineOf(''), head, ...lines.map((text) => lineOf(text, isBad ? 'bad' : undefined))];
}

const headersOf = ({ headers }: TaskDetails): string[] => Object.entries(headers).map(([k, v]) => plain(`${k}: ${v}`));

const sizeOf = (bytes: Buffer | undefined): string => (bytes ? ` (${formatBytes(bytes.length)})` : '');

/** The bytes of a task never change, so their lines are kept. */
const known = new WeakMap<Buffer, { readonly width: number; readonly lines: string[] }>();

function bytesLines(bytes: Buffer | undefined, width: number): string[] {
  if (bytes === undefined || bytes.length === 0) return [];
  const cached = known.get(bytes);
  if (cached?.width === width) return cached.lines;
  const text = textOf(bytes, MAX_TEXT_BYTES);
  const lines = text === undefined ? dump(bytes, width) : wrap(prettyJson(text) ?? text, width);
  const left = bytes.length - (text === undefined ? MAX_DUMP_BYTES : MAX_TEXT_BYTES);
  if (left > 0) lines.push(`… and ${formatCount(left)} bytes more`);
  known.set(bytes, { width, lines });
  return lines;
}

/** A dump in the form of hexdump(1). */
function dump(bytes: Buffer, width: number): string[] {
  const perLine = width >= 77 ? 16 : width >= 45 ? 8 : 4;
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, MAX_DUMP_BYTES); at += perLine) {
    const some = [...bytes.subarray(at, at + perLine)];
    const hex = some.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = some.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(perLine * 3)} ${text}`);
  }
  return lines;
}

/** Printable lines of at most `width`. */
export function wrap(text: string, width: number): string[] {
  if (text === '') return [];
  return text.split(/\r?\n/).flatMap((line) => wrapLine(plain(line.replaceAll('\t', '  ')), width));
}

function wrapLine(line: string, width: number): string[] {
  if (line.length <= width && widthOf(line) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  let used = 0;
  for (const char of line) {
    const wide = char < '\u0300' ? 1 : widthOf(char);
    if (used + wide > width && current !== '') {
      lines.push(current);
      [current, used] = ['', 0];
    }
    current += char;
    used += wide;
  }
  return [...lines, current];
}
