import { floorSeconds } from '../../../clock.js';

/** 90 days, as for the daily counters (exchange.lua). */
const ARCHIVE_SECONDS = 90 * 86_400;
/** Go keeps one less than the 10,000 it names (wire-protocol section 4.12). */
const MAX_ARCHIVED = 9_999;

/** The arguments `cutoff` and `keep` of trim-archived.lua. @param now milliseconds since the epoch */
export const archiveLimits = (now: number): [cutoff: string, keep: string] => [
  String(floorSeconds(now) - ARCHIVE_SECONDS),
  String(MAX_ARCHIVED),
];
