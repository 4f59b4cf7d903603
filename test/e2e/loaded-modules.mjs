// `node --import <this file>`: tells on standard error, a line each, which files the program loads.
import { writeSync } from 'node:fs';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) register(import.meta.url);

export async function load(url, context, next) {
  if (url.startsWith('file:')) writeSync(2, `loaded ${url}\n`);
  return next(url, context);
}
