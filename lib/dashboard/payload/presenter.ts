import { isUtf8 } from 'node:buffer';
import type { FieldPaths } from '../../redaction/field-paths.js';
import type { Hidden, Redactor } from '../../redaction/redactor.js';
import { REDACTED } from '../../redaction/rules.js';
import { PREREQUISITE_FAILED } from '../../task/links.js';
import { type Decoded, decode, isOwnJson, type PayloadDecoder } from './decoders.js';
import { hasFields, mask, showsAll } from './mask.js';
import { beginning, printable } from './text.js';

/** Anything with a type and a payload: a task, a worker, a periodic entry. */
export interface Subject {
  readonly type: string;
  readonly queue: string;
  readonly payload: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly result?: Buffer | undefined;
  /** Text of the last error. */
  readonly error?: string;
}

/** The visible part of a payload or result. */
export interface VisibleBytes {
  readonly text: string;
  readonly decoded: { readonly decoder: string; readonly value: unknown } | undefined;
  /** Whether the raw bytes must not be shown, because a part of them is hidden or may be. */
  readonly isHidden: boolean;
}

/** The visible parts of a task. The console shows nothing else of it. */
export interface Presented {
  /** Whether a part of it is hidden or may be. */
  readonly redacted: boolean;
  readonly payload: VisibleBytes;
  readonly result: VisibleBytes;
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Larger payloads are not decoded, and their bytes are not sent. */
export const MAX_SHOWN_BYTES = 1_000_000;
/** In lists, larger payloads are not decoded, and only this much of them is read. */
export const MAX_LISTED_BYTES = 16_384;
/** A search scans up to 10,000 tasks, so it decodes only smaller payloads. */
const MAX_SEARCHED_BYTES = 65_536;

/** The largest payload that is decoded for each use. */
const MAX_DECODED_BYTES = { task: MAX_SHOWN_BYTES, row: MAX_LISTED_BYTES, search: MAX_SEARCHED_BYTES } as const;

/** Replaces a payload that is too large to decode, where parts of it would have to be hidden. */
export const TOO_LARGE = '[too large to be shown with parts of it hidden]';

export interface PresenterOptions {
  readonly redactor: Redactor;
  readonly decoders: readonly PayloadDecoder[];
}

type Part = 'payload' | 'result';

interface Viewing {
  readonly subject: Subject;
  readonly part: Part;
  readonly use: 'task' | 'row' | 'search';
}

const NO_HEADERS = {};
const NOTHING = { text: '', decoded: undefined };
const hiddenAs = (text: string): VisibleBytes => ({ text, decoded: undefined, isHidden: true });

/**
 * The only way for payloads, results, errors and headers to leave the server. Rules, types and
 * names decide what is hidden, never the hidden values themselves.
 */
export class Presenter {
  constructor(private readonly options: PresenterOptions) {}

  /** The visible parts of one task. */
  present(subject: Subject): Presented {
    return this.view(subject, 'task');
  }

  /**
   * The visible parts of a row in a list: no decoded values, and only the beginning of large
   * payloads and results.
   */
  presentRow(subject: Subject): Presented {
    return this.view(subject, 'row');
  }

  /**
   * Whether the visible part of the payload contains the text. A payload too large for a search
   * counts as hidden if a part of it may be.
   */
  isInPayload(subject: Subject, text: string): boolean {
    const { payload } = subject;
    const hidden = this.hiddenOf(subject);
    const seen = hidden?.fields && this.viewBytes(payload, hidden, { subject, part: 'payload', use: 'search' });
    return seen?.isHidden ? seen.text.includes(text) : payload.includes(text);
  }

  /**
   * The visible part of the payload, decoded, for a search; `undefined` if it cannot be decoded, is
   * too large for a search, or is hidden.
   */
  visibleValue(subject: Subject): unknown {
    const viewing: Viewing = { subject, part: 'payload', use: 'search' };
    return this.viewBytes(subject.payload, this.hiddenOf(subject), viewing).decoded?.value;
  }

  /** Whether the raw bytes must not leave the server. */
  hidesBytes(subject: Subject, part: Part): boolean {
    return this.presentPart(subject, part).isHidden;
  }

  /** Whether a part of the payload of such a task may be hidden, whatever its payload is. */
  mayHidePayload(task: { type: string; queue: string }): boolean {
    return this.hiddenOf(task)?.fields !== undefined;
  }

  /** What a handler says of itself (progress, log): shown whole or not at all, as its errors are. */
  presentSaid(task: { type: string; queue: string }, text: string): string {
    return text !== '' && this.hiddenOf(task)?.errors ? REDACTED : text;
  }

  /** The visible part of chunks, as of a result. @param json an array */
  presentChunks(subject: Subject, json: string): VisibleBytes {
    return this.presentPart({ ...subject, result: Buffer.from(json) }, 'result');
  }

  presentError({ error = '', ...task }: Pick<Subject, 'type' | 'queue' | 'error'>): string {
    return error !== '' && this.hiddenOf(task)?.errors ? REDACTED : this.withoutQuote(error);
  }

  /** The error of a prerequisite, as a task that waits for it stores it. Whose rules count is not known any more. */
  presentReason(reason: string): string {
    return reason !== '' && this.options.redactor.hidesSomeErrors ? REDACTED : reason;
  }

  hidesHeader(task: { type: string; queue: string }, name: string): boolean {
    return this.hiddenOf(task)?.hidesHeader(name) ?? false;
  }

  /**
   * Whether the sender may learn that another task has the same payload. With custom decoders only
   * for JSON, because they may depend on headers.
   */
  mayBeCompared(subject: Subject): boolean {
    const hidden = this.hiddenOf(subject);
    if (!hidden?.fields) return true;
    if (this.hidesBytes(subject, 'payload')) return false;
    return this.hasOnlyJson || subject.payload.length === 0 || this.isJson(subject);
  }

  /** Whether a copy with another type, queue or headers hides at least as much of the payload. */
  hidesInCopy(subject: Subject, copy: Omit<Subject, 'payload'>): boolean {
    const [before, after] = [this.hiddenOf(subject), this.hiddenOf(copy)];
    if (!before?.fields) return true;
    if (!after?.coversFieldsOf(before)) return false;
    const { fields } = before;
    return (
      fields === 'all' ||
      after.fields === 'all' ||
      this.hasOnlyJson ||
      this.readsAlike(subject, { ...subject, ...copy }, fields)
    );
  }

  private presentPart(subject: Subject, part: Part): VisibleBytes {
    return this.viewBytes(subject[part], this.hiddenOf(subject), { subject, part, use: 'task' });
  }

  private hiddenOf(task: { type: string; queue: string }): Hidden | undefined {
    return this.options.redactor.of(task);
  }

  private get hasOnlyJson(): boolean {
    return this.options.decoders.every(isOwnJson);
  }

  private isJson(subject: Subject): boolean {
    const decoded = this.decode(subject.payload, { subject, part: 'payload', use: 'task' });
    return decoded !== undefined && isOwnJson(decoded.decoder);
  }

  /** Decoders may depend on type, queue and headers. Without fields, nothing would be hidden. */
  private readsAlike(subject: Subject, copy: Subject, fields: FieldPaths): boolean {
    const [before, after] = [subject, copy].map((one) => {
      const decoded = this.decode(one.payload, { subject: one, part: 'payload', use: 'task' });
      return decoded && JSON.stringify([decoded.decoder.name, mask(decoded.value, fields.start)]);
    });
    return before === after;
  }

  private view(subject: Subject, use: Viewing['use']): Presented {
    const hidden = this.hiddenOf(subject);
    const payload = this.viewBytes(subject.payload, hidden, { subject, part: 'payload', use });
    const result = this.viewBytes(subject.result, hidden, { subject, part: 'result', use });
    const { headers = NO_HEADERS, error = '' } = subject;
    const seen = maskHeaders(headers, hidden);
    return {
      payload,
      result,
      headers: seen,
      redacted: hidden?.hasRule === true || payload.isHidden || result.isHidden || seen !== headers,
      error: error !== '' && hidden?.errors ? REDACTED : this.withoutQuote(error),
    };
  }

  /** A task that was cancelled because another failed quotes the error of that one. */
  private withoutQuote(error: string): string {
    if (!error.startsWith(PREREQUISITE_FAILED) || !this.options.redactor.hidesSomeErrors) return error;
    const end = error.indexOf('": ');
    return end < 0 ? error : `${error.slice(0, end + 3)}${REDACTED}`;
  }

  private viewBytes(bytes: Buffer | undefined, hidden: Hidden | undefined, viewing: Viewing): VisibleBytes {
    if (bytes === undefined || bytes.length === 0) return { ...NOTHING, isHidden: hidden?.isStrict === true };
    if (!hidden?.fields) return this.viewWhole(bytes, viewing);
    if (hidden.fields === 'all') return hiddenAs(REDACTED);
    return hidden.isStrict
      ? this.viewStrictly(bytes, hidden.fields, viewing)
      : this.viewByName(bytes, hidden.fields, viewing);
  }

  private viewWhole(bytes: Buffer, viewing: Viewing): VisibleBytes {
    if (viewing.use === 'row')
      return { text: printable(beginning(bytes, MAX_LISTED_BYTES)), decoded: undefined, isHidden: false };
    return { text: printable(bytes), decoded: shown(this.decode(bytes, viewing)), isHidden: false };
  }

  /**
   * Hides a value completely if it cannot be decoded or has no fields, because the rules cannot be
   * applied to parts of it.
   */
  private viewStrictly(bytes: Buffer, fields: FieldPaths, viewing: Viewing): VisibleBytes {
    if (bytes.length > MAX_DECODED_BYTES[viewing.use]) return hiddenAs(TOO_LARGE);
    const decoded = this.decode(bytes, viewing);
    if (!decoded || !hasFields(decoded.value)) return hiddenAs(REDACTED);
    return showMasked({ ...decoded, value: mask(decoded.value, fields.start) });
  }

  /**
   * By default only fields with names of secrets are hidden. Shows the bytes if they contain no
   * such name.
   */
  private viewByName(bytes: Buffer, fields: FieldPaths, viewing: Viewing): VisibleBytes {
    const seen = viewing.use === 'row' ? beginning(bytes, MAX_LISTED_BYTES) : bytes;
    const text = isUtf8(seen) ? seen.toString() : seen.toString('latin1');
    const isNamed = fields.mayBeIn(text);
    if (!isNamed && this.hasOnlyJson) return this.viewWhole(bytes, viewing);
    if (bytes.length > MAX_DECODED_BYTES[viewing.use])
      return isNamed || !isUtf8(seen) ? hiddenAs(TOO_LARGE) : this.viewWhole(bytes, viewing);
    const decoded = this.decode(bytes, viewing);
    if (!decoded) return isNamed ? hiddenAs(REDACTED) : this.viewWhole(bytes, viewing);
    const value = mask(decoded.value, fields.start);
    const isWhole = (): boolean => (isOwnJson(decoded.decoder) ? showsAll(text, decoded.value) : !isNamed);
    if (value !== decoded.value || !isWhole()) return showMasked({ ...decoded, value });
    return { text: printable(bytes), decoded: shown(decoded), isHidden: false };
  }

  private decode(bytes: Buffer, viewing: Viewing): Decoded | undefined {
    if (bytes.length > MAX_DECODED_BYTES[viewing.use]) return undefined;
    const { type, queue, headers = NO_HEADERS } = viewing.subject;
    return decode(this.options.decoders, bytes, { type, queue, headers, part: viewing.part });
  }
}

const shown = (decoded: Decoded | undefined): VisibleBytes['decoded'] =>
  decoded && { decoder: decoded.decoder.name, value: decoded.value };

const showMasked = (decoded: Decoded): VisibleBytes => ({
  text: JSON.stringify(decoded.value),
  decoded: shown(decoded),
  isHidden: true,
});

/** Returns the same object if no header is hidden. */
function maskHeaders(headers: Readonly<Record<string, string>>, hidden: Hidden | undefined) {
  const names = Object.keys(headers);
  if (!hidden || !names.some((name) => hidden.hidesHeader(name))) return headers;
  return Object.fromEntries(names.map((name) => [name, hidden.hidesHeader(name) ? REDACTED : headers[name]!]));
}
