import type { StoredHold } from '../../inspection.js';
import { readNanoseconds } from './arguments.js';

/** @param since as lua/shared/hold.lua returns it: nanoseconds */
export function readHold(state: string, since: string, waitlist: string): StoredHold | undefined {
  return state === 'held' ? { since: readNanoseconds(since), waitlist } : undefined;
}
