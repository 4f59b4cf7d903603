import { vi } from 'vitest';

/*
 * What a test waits for comes within milliseconds, and on a machine that is busy with other things within seconds. Vitest gives up
 * after one: a setup file of all suites makes that ten, where a test does not say how long it waits.
 */

const PATIENCE = 10_000;

const { waitFor } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: PATIENCE, ...options });
