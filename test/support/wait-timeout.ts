import { vi } from 'vitest';

/*
 * A setup file of all suites. On a busy machine an event may take seconds, but `vi.waitFor` of
 * Vitest waits for one second only. Here it waits for thirty, unless a test names a timeout.
 */

const WAIT_TIMEOUT_MS = 30_000;

const { waitFor } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: WAIT_TIMEOUT_MS, ...options });
