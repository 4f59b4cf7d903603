import { vi } from 'vitest';

/*
 * A setup file of all suites. On a busy machine an event may take seconds, but `vi.waitFor` and
 * `vi.waitUntil` of Vitest wait for one second only. Here they wait for thirty, unless a test names a
 * timeout. So does `expect.poll`: see vitest.config.ts.
 */

const WAIT_TIMEOUT_MS = 30_000;

const { waitFor, waitUntil } = vi;
type Options = Parameters<typeof waitFor>[1];
const withTimeout = (options: Options): Options =>
  typeof options === 'number' ? options : { timeout: WAIT_TIMEOUT_MS, ...options };
vi.waitFor = (callback, options) => waitFor(callback, withTimeout(options));
vi.waitUntil = (callback, options) => waitUntil(callback, withTimeout(options));
