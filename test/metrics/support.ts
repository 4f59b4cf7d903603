import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { onTestFinished } from 'vitest';
import { quiet } from '../nest/support.js';

/** An application that runs, closed when the test ends. */
export async function start(metadata: ModuleMetadata): Promise<INestApplication> {
  const app = (await Test.createTestingModule(metadata).setLogger(quiet).compile()).createNestApplication();
  onTestFinished(() => app.close());
  await app.init();
  return app;
}

/** The samples of an exposition, as `name{label="value"}` → value; labels in alphabetical order. */
export function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = [...(match[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([label]) => label).sort();
    const key = labels.length > 0 ? `${match[1]}{${labels.join(',')}}` : match[1]!;
    if (samples.has(key)) throw new Error(`${key} is exported twice`);
    samples.set(key, Number(match[3]));
  }
  return samples;
}

/** Names of metrics and their types. */
export const typesOf = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
