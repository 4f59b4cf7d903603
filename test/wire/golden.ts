import { readFileSync } from 'node:fs';

/** One of the files that the Go program in golden/ wrote. */
export const readGolden = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`golden/${name}.json`, import.meta.url), 'utf8')) as T;

/** Bytes written in hexadecimal, with spaces where they help the reader. */
export const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
