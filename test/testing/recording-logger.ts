import type { LoggerService } from '@nestjs/common';

export interface RecordedLine {
  readonly level: 'log' | 'warn' | 'error';
  readonly text: string;
  /** Of an error, if it was logged with one. */
  readonly stack: string | undefined;
}

/** A logger of Nest that keeps what it gets. */
export function recordingLogger(): { readonly logger: LoggerService; readonly lines: RecordedLine[] } {
  const lines: RecordedLine[] = [];
  const keep =
    (level: RecordedLine['level']) =>
    (text: unknown, ...rest: unknown[]): void => {
      lines.push({
        level,
        text: String(text),
        stack: typeof rest[0] === 'string' && rest.length > 1 ? rest[0] : undefined,
      });
    };
  return { logger: { log: keep('log'), warn: keep('warn'), error: keep('error') }, lines };
}
