import { isUtf8 } from 'node:buffer';
import type { FieldPaths } from '../../redaction/field-paths.js';
import type { Hidden, Redactor } from '../../redaction/redactor.js';
import { REDACTED } from '../../redaction/rules.js';
import { type Decoded, decode, isOwnJson, type PayloadDecoder } from './decoders.js';
import { hasFields, mask, showsAll } from './mask.js';
import { beginning, printable } from './text.js';

/** A task, or what else has a type and a payload: a worker, a periodic entry. */
export interface Subject {
  readonly type: string;
  readonly queue: string;
  readonly payload: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly result?: Buffer | undefined;
  /** Text of the last error. */
  readonly error?: string;
}

/** What may be seen of a payload or a result. */
export interface VisibleBytes {
  readonly text: string;
  readonly decoded: { readonly decoder: string; readonly value: unknown } | undefined;
  /** Whether the bytes themselves must not be shown, as something in them is hidden or could be. */
  readonly isHidden: boolean;
}

/** What of a task may be seen. Whatever is said of it is said of this alone. */
export interface Presented {
  /** Whether something of it is hidden, or could be. */
  readonly redacted: boolean;
  readonly payload: VisibleBytes;
  readonly result: VisibleBytes;
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Larger ones are neither decoded nor sent as bytes. */
export const MAX_SHOWN_BYTES = 1_000_000;
/** In lists, of which each reply has many, larger ones are judged by this much of their beginning, and not decoded. */
export const MAX_LISTED_BYTES = 16_384;
/** A search, which looks at up to 10,000, decodes no larger ones. */
const MAX_SEARCHED_BYTES = 65_536;

/** Bytes up to which something is decoded. */
const MAX_DECODED_BYTES = { task: MAX_SHOWN_BYTES, row: MAX_LISTED_BYTES, search: MAX_SEARCHED_BYTES } as const;

/** Stands for what would have to be decoded to hide something in it, and is too large for that. */
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
 * The one way by which payloads, results, errors and headers leave the server. What is hidden follows from rules, types and names,
 * never from the values that are hidden: these have no part in any answer.
 */
export class Presenter {
  constructor(private readonly options: PresenterOptions) {}

  /** All that may be seen of one task. */
  present(subject: Subject): Presented {
    return this.view(subject, 'task');
  }

  /** As a row of a list shows it: without decoded values, and at most the beginning of large payloads and results. */
  presentRow(subject: Subject): Presented {
    return this.view(subject, 'row');
  }

  /** Whether a text is in what may be seen of a payload. What is too large for a search counts as hidden where something in it could be. */
  isInPayload(subject: Subject, text: string): boolean {
    const { payload } = subject;
    const hidden = this.hiddenOf(subject);
    const seen = hidden?.fields && this.viewBytes(payload, hidden, { subject, part: 'payload', use: 'search' });
    return seen?.isHidden ? seen.text.includes(text) : payload.includes(text);
  }

  /** Whether the bytes as they are must not leave the server. */
  hidesBytes(subject: Subject, part: Part): boolean {
    return this.presentPart(subject, part).isHidden;
  }

  presentError({ error = '', ...task }: Pick<Subject, 'type' | 'queue' | 'error'>): string {
    return error !== '' && this.hiddenOf(task)?.errors ? REDACTED : error;
  }

  hidesHeader(task: { type: string; queue: string }, name: string): boolean {
    return this.hiddenOf(task)?.hidesHeader(name) ?? false;
  }

  /**
   * Whether somebody may learn that other tasks have the same payload. Headers can have another decoder read it, or none; so where
   * the application has decoders, it must be JSON.
   */
  mayBeCompared(subject: Subject): boolean {
    const hidden = this.hiddenOf(subject);
    if (!hidden?.fields) return true;
    if (this.hidesBytes(subject, 'payload')) return false;
    return this.hasOnlyJson || subject.payload.length === 0 || this.isJson(subject);
  }

  /** Whether a copy of the payload under another type, queue or headers would show no more of it. */
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

  /** Decoders may go by type, queue and headers: one that knows no fields would show all of it. */
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
      redacted: hidden?.isStated === true || payload.isHidden || result.isHidden || seen !== headers,
      error: error !== '' && hidden?.errors ? REDACTED : error,
    };
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

  /** What cannot be decoded, or has no fields, is hidden altogether: nobody can tell what of it was meant. */
  private viewStrictly(bytes: Buffer, fields: FieldPaths, viewing: Viewing): VisibleBytes {
    if (bytes.length > MAX_DECODED_BYTES[viewing.use]) return hiddenAs(TOO_LARGE);
    const decoded = this.decode(bytes, viewing);
    if (!decoded || !hasFields(decoded.value)) return hiddenAs(REDACTED);
    return showMasked({ ...decoded, value: mask(decoded.value, fields.start) });
  }

  /** By default only what is called like a secret is hidden. The bytes are shown where no such name is in them. */
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

/** The headers themselves where none is hidden. */
function maskHeaders(headers: Readonly<Record<string, string>>, hidden: Hidden | undefined) {
  const names = Object.keys(headers);
  if (!hidden || !names.some((name) => hidden.hidesHeader(name))) return headers;
  return Object.fromEntries(names.map((name) => [name, hidden.hidesHeader(name) ? REDACTED : headers[name]!]));
}
