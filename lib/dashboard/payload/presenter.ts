import { type Decoded, decode, type PayloadDecoder } from './decoders.js';
import { type Hidden, hiddenOf, mask, REDACTED, type Redaction, scrub } from './redactor.js';
import { printable } from './text.js';

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

/** What of it may be seen. */
export interface Presented {
  readonly redacted: boolean;
  readonly payload: string;
  readonly result: string;
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payloadDecoded: Decoded | undefined;
  readonly resultDecoded: Decoded | undefined;
}

/** Larger ones are neither decoded nor sent as bytes. */
export const LARGEST_SHOWN = 1_000_000;

export interface PresenterOptions {
  readonly redact: Redaction;
  readonly decoders: readonly PayloadDecoder[];
}

const NO_HEADERS = {};

/** The one way by which payloads, results, errors and headers leave the server. */
export class Presenter {
  constructor(private readonly options: PresenterOptions) {}

  isRedacted(task: { type: string; queue: string }): boolean {
    return hiddenOf(this.options.redact, task) !== undefined;
  }

  /** @param decoded whether the decoded values are wanted, which lists do without */
  present(subject: Subject, decoded: boolean): Presented {
    const hidden = hiddenOf(this.options.redact, subject);
    if (hidden) return this.presentRedacted(subject, hidden);
    const { payload, result, error = '', headers = NO_HEADERS } = subject;
    return {
      ...{ redacted: false, error, headers },
      payload: printable(payload),
      result: printable(result),
      payloadDecoded: decoded ? this.decode(payload, subject, 'payload') : undefined,
      resultDecoded: decoded ? this.decode(result, subject, 'result') : undefined,
    };
  }

  /** What cannot be decoded is hidden altogether: nobody can tell where in it the fields are. So is the error of such a task. */
  private presentRedacted(subject: Subject, hidden: Hidden): Presented {
    const secrets = new Set<string>();
    const payload = this.redact(subject.payload, subject, 'payload', hidden, secrets);
    const result = this.redact(subject.result, subject, 'result', hidden, secrets);
    const headers = maskHeaders(subject.headers ?? NO_HEADERS, hidden, secrets);
    const opaque = payload === 'opaque' || result === 'opaque';
    return {
      redacted: true,
      payload: textOf(payload),
      result: textOf(result),
      error: opaque && subject.error ? REDACTED : scrub(subject.error ?? '', secrets),
      headers,
      payloadDecoded: typeof payload === 'object' ? payload : undefined,
      resultDecoded: typeof result === 'object' ? result : undefined,
    };
  }

  private redact(
    bytes: Buffer | undefined,
    subject: Subject,
    part: 'payload' | 'result',
    hidden: Hidden,
    secrets: Set<string>,
  ): Decoded | 'opaque' | undefined {
    if (bytes === undefined || bytes.length === 0) return undefined;
    const decoded = this.decode(bytes, subject, part);
    // In a bare text there are no fields: it may be JSON once more, or the secret itself.
    if (!decoded || (hidden.paths !== undefined && typeof decoded.value === 'string')) return 'opaque';
    if (hidden.paths === undefined) secrets.add(bytes.toString());
    return { decoder: decoded.decoder, value: mask(decoded.value, hidden, secrets) };
  }

  private decode(bytes: Buffer | undefined, subject: Subject, part: 'payload' | 'result'): Decoded | undefined {
    if (bytes === undefined || bytes.length > LARGEST_SHOWN) return undefined;
    const { type, queue, headers = NO_HEADERS } = subject;
    return decode(this.options.decoders, bytes, { type, queue, headers, part });
  }
}

function textOf(redacted: Decoded | 'opaque' | undefined): string {
  if (redacted === undefined) return '';
  if (redacted === 'opaque') return REDACTED;
  return typeof redacted.value === 'string' ? redacted.value : JSON.stringify(redacted.value);
}

function maskHeaders(headers: Readonly<Record<string, string>>, hidden: Hidden, secrets: Set<string>) {
  const entries = Object.entries(headers).map(([name, value]) => {
    if (!hidden.headers.has(name.toLowerCase())) return [name, value] as const;
    if (value.length > 2) secrets.add(value);
    return [name, REDACTED] as const;
  });
  return Object.fromEntries(entries);
}
