import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { isAbsolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ResourceLimits } from 'node:worker_threads';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../validation.js';

/** The threads in which handlers with `thread: true` run. */
export interface ThreadOptions {
  /**
   * The file that exports the Nest module with the handlers: `new URL('./render.module.js', import.meta.url)`, or an absolute path, as
   * `require.resolve('./render.module')` gives. Each thread loads it and makes an application context of it.
   */
  module: URL | string;
  /** The name of the exported module. Default: the default export, or the only module that the file exports. */
  export?: string;
  /** How many threads there are at most; each runs one task at a time. Default: the number of CPUs. */
  count?: number;
  /** How long a handler may go on once its signal has fired, before its thread is ended. Default 5 s. */
  grace?: Duration;
  /** Limits of memory of each thread, as of `Worker` in `node:worker_threads`. Default: Node's. */
  resourceLimits?: ResourceLimits;
}

export interface ResolvedThreadOptions {
  /** A `file:` URL. */
  readonly module: string;
  readonly export: string | undefined;
  readonly count: number;
  /** Milliseconds. */
  readonly grace: number;
  readonly resourceLimits: ResourceLimits | undefined;
}

const KNOWN = [
  'module',
  'export',
  'count',
  'grace',
  'resourceLimits',
] as const satisfies readonly (keyof ThreadOptions)[];
const COUNT = { least: 1, most: 1_024 };
const DEFAULT_GRACE_MS = 5_000;

/** @throws InvalidOptionError */
export function resolveThreads(given: unknown): ResolvedThreadOptions {
  const options = requireObject(given, 'threads', InvalidOptionError) as Partial<ThreadOptions>;
  rejectUnknownKeys(options, KNOWN, 'option of threads', InvalidOptionError);
  const { count = availableParallelism(), grace = DEFAULT_GRACE_MS, resourceLimits } = options;
  if (options.export !== undefined) requireNonBlank(options.export, 'export of threads', InvalidOptionError);
  if (resourceLimits !== undefined) requireObject(resourceLimits, 'resourceLimits of threads', InvalidOptionError);
  const milliseconds = parseDuration(grace, 'grace of threads');
  if (milliseconds < 0) throw new InvalidOptionError(`grace of threads must be zero or more, not ${grace}`);
  return {
    module: fileOf(options.module),
    export: options.export,
    count: requireInteger(count, 'count of threads', InvalidOptionError, COUNT),
    grace: milliseconds,
    resourceLimits,
  };
}

/** A thread gets a copy of what it is given, and a function has none: so it is the name of a file. */
function fileOf(module: unknown): string {
  const url = typeof module === 'string' && isAbsolute(module) ? pathToFileURL(module) : urlOf(module);
  if (url?.protocol !== 'file:') {
    throw new InvalidOptionError(
      `module of threads is ${describe(module)}; it must name a file: its file: URL, or its absolute path, as ` +
        "require.resolve('./render.module') gives. A thread cannot get a function or a class",
    );
  }
  if (!existsSync(fileURLToPath(url))) {
    throw new InvalidOptionError(`module of threads: there is no file ${fileURLToPath(url)}`);
  }
  return url.href;
}

const urlOf = (module: unknown): URL | undefined =>
  module instanceof URL ? module : typeof module === 'string' && URL.canParse(module) ? new URL(module) : undefined;
