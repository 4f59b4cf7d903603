import { INSPECT_SCRIPTS } from './inspect-scripts.js';
import { LINK_SCRIPTS } from './link-scripts.js';
import type { ScriptShape } from './script-shape.js';

const EXCHANGE = {
  keys: [
    'pending',
    'paused',
    'active',
    'lease',
    'processedOn',
    'processed',
    'failedOn',
    'failed',
    'retry',
    'archived',
    'completed',
    'rate',
    'links',
    'running',
  ],
  argv: ['taskPrefix', 'now', 'nowNanos', 'leaseExpiry', 'take', 'count', 'limits', 'since', 'results'],
} as const satisfies ScriptShape;

const FINISH_SET = {
  keys: ['aggregationSets', 'aggregationSet', 'pending', 'scheduled', 'groups'],
  argv: ['taskPrefix', 'setDeadline', 'now', 'nowNanos', 'locks', 'resent', 'route'],
} as const satisfies ScriptShape;

const ENQUEUE_UNIQUE = {
  keys: ['pending', 'scheduled', 'retry', 'waitingTasks'],
  argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'policies', 'cancel', 'room', 'copied'],
} as const satisfies ScriptShape;

const FIRE = {
  keys: ['schedule', 'pending', 'scheduled', 'groups', 'task'],
  argv: [
    'taskPrefix',
    'now',
    'nowNanos',
    'scheduledFor',
    'attempt',
    'skipUnfinished',
    'keepFor',
    'id',
    'route',
    'message',
  ],
} as const satisfies ScriptShape;

/** The scripts directly below lua/. */
const TASK_SCRIPTS = {
  enqueue: {
    keys: ['pending', 'scheduled', 'groups'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'routes'],
  },
  enqueueFair: {
    keys: ['pending', 'scheduled', 'groups'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'routes'],
  },
  enqueueBounded: {
    keys: ['pending', 'scheduled', 'groups'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'routes'],
  },
  enqueueRows: {
    keys: ['pending', 'scheduled', 'groups'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'routes'],
  },
  enqueueUnique: ENQUEUE_UNIQUE,
  enqueueUniqueLinked: { file: 'enqueue-unique-rows', ...ENQUEUE_UNIQUE },
  enqueueUniqueRows: ENQUEUE_UNIQUE,
  releaseLock: { keys: ['lock'], argv: ['id'] },
  findSuperseded: { keys: [], argv: [] },
  describeLocks: { keys: [], argv: ['taskPrefix'] },
  exchange: EXCHANGE,
  exchangeLinked: { file: 'exchange', ...EXCHANGE },
  exchangeFair: EXCHANGE,
  exchangeFairLinked: { file: 'exchange-fair', ...EXCHANGE },
  extendLeases: { keys: ['lease'], argv: ['expiry', 'count'] },
  writeFields: { keys: ['lease'], argv: ['taskPrefix'] },
  writeNotes: { keys: ['lease', 'task'], argv: ['id', 'progress', 'fresh', 'limits'] },
  signal: { keys: ['task', 'scheduled', 'pending'], argv: ['id', 'name', 'payload', 'nowNanos', 'most'] },
  forward: {
    keys: ['scheduled', 'retry', 'pending', 'groups', 'delayedGroups', 'held'],
    argv: ['taskPrefix', 'groupPrefix', 'now', 'nowNanos', 'limit'],
  },
  fillTurns: { keys: ['pending', 'paused', 'lease'], argv: ['taskPrefix', 'now', 'nowNanos', 'most'] },
  repairLines: { keys: ['fairRing', 'fairHeld', 'fairTotal'], argv: ['linePrefix'] },
  repairTotal: {
    keys: ['fairTotal', 'fairRing', 'fairHeld'],
    argv: ['linePrefix', 'before', 'counted', 'most'],
  },
  listExpiredLeases: { keys: ['lease', 'active'], argv: ['taskPrefix', 'cutoff', 'limit'] },
  repairActive: { keys: ['active', 'lease'], argv: ['expiry', 'from', 'length'] },
  deleteExpiredCompleted: { keys: ['completed'], argv: ['taskPrefix', 'now', 'limit'] },
  deleteLateResults: { keys: [], argv: [] },
  trimArchived: { keys: ['archived'], argv: ['taskPrefix', 'cutoff', 'keep', 'limit'] },
  claimDueSets: {
    keys: ['aggregationSets', 'groups'],
    argv: ['now', 'setDeadline', 'limit', 'mostTasks', 'heard', 'policies'],
  },
  readSet: { keys: ['aggregationSet'], argv: ['taskPrefix', 'from', 'length'] },
  archiveDamagedMembers: {
    keys: ['aggregationSets', 'aggregationSet', 'archived'],
    argv: ['taskPrefix', 'setDeadline', 'now'],
  },
  finishSet: FINISH_SET,
  finishSetLinked: { file: 'finish-set', ...FINISH_SET },
  reclaimStaleSets: {
    keys: ['aggregationSets', 'groups'],
    argv: ['taskPrefix', 'groupPrefix', 'now', 'limit'],
  },
  openSchedule: { keys: ['schedule'], argv: ['now', 'spec', 'keepFor'] },
  pauseSchedule: { keys: ['schedule'], argv: ['now'] },
  resumeSchedule: { keys: ['schedule'], argv: ['now'] },
  fire: FIRE,
  fireLinked: { file: 'fire', ...FIRE },
  writeSchedulerEntries: { keys: ['schedulerEntries'], argv: ['ttl'] },
  recordEnqueueEvent: { keys: ['schedulerHistory'], argv: ['time', 'event', 'most', 'keepFor'] },
  appendEvents: { keys: ['eventStream'], argv: ['nowMillis', 'most', 'keepFor', 'replaces'] },
  takeSeat: {
    keys: ['crewCalled', 'crewCrowded'],
    argv: ['server', 'sits', 'ttl', 'maintainers', 'crowdedTtl', 'channel'],
  },
  callStandbys: { keys: ['crewCalled'], argv: ['start', 'parts', 'window', 'channel'] },
  recordCancellation: {
    keys: ['cancellations', 'cancellationDetails'],
    argv: ['id', 'at', 'details', 'oldest', 'most', 'keepFor'],
  },
} as const satisfies Record<string, ScriptShape>;

/**
 * The scripts, named after the broker methods they serve. The header of each file describes the
 * same KEYS and ARGV; test/redis/scripts.spec.ts compares registry, headers and calls.
 */
export const SCRIPTS = { ...TASK_SCRIPTS, ...INSPECT_SCRIPTS, ...LINK_SCRIPTS } as const;

export type ScriptName = keyof typeof SCRIPTS;
