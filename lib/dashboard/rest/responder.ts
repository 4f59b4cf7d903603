import { StreamableFile } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';

export interface Outgoing {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export type Content = Pick<Outgoing, 'headers' | 'body'>;

/** Headers of every reply. */
const ALWAYS = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;

/**
 * Writes every reply. Interceptors and filters of the application run, but cannot change a reply.
 */
export function send({ httpAdapter }: HttpAdapterHost, response: unknown, { status, headers, body }: Outgoing): void {
  if (httpAdapter.isHeadersSent(response)) return;
  for (const [name, value] of Object.entries({ ...ALWAYS, ...headers })) httpAdapter.setHeader(response, name, value);
  const content = Buffer.isBuffer(body) ? new StreamableFile(body, { length: body.length }) : body;
  httpAdapter.reply(response, content, status);
}

const POLICY = "default-src 'none'; frame-ancestors 'none'";

export const json = (value: unknown): Content => ({
  headers: { 'Content-Type': 'application/json; charset=utf-8', 'Content-Security-Policy': POLICY },
  body: `${JSON.stringify(value)}\n`,
});

export const plain = (text: string): Content => ({
  headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Security-Policy': POLICY },
  body: `${text}\n`,
});
