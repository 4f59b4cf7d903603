import { floorSeconds } from '../../../clock.js';
import type { ArchiveLimit } from '../../archives.js';

/** The arguments `cutoff` and `keep` of trim-archived.lua. @param now milliseconds since the epoch */
export const archiveLimits = ({ maxTasks, maxAge }: ArchiveLimit, now: number): [cutoff: string, keep: string] => [
  maxAge === Infinity ? '-inf' : String(floorSeconds(now) - maxAge),
  String(Math.min(maxTasks, Number.MAX_SAFE_INTEGER)),
];
