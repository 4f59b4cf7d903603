/** The type of each key of a queue, by its name in QueueKeys. */
export const KEY_TYPES = {
  pending: 'list',
  active: 'list',
  lease: 'zset',
  scheduled: 'zset',
  retry: 'zset',
  archived: 'zset',
  completed: 'zset',
  groups: 'set',
  aggregationSets: 'zset',
  paused: 'string',
  processed: 'string',
  failed: 'string',
  processedOn: 'string',
  failedOn: 'string',
  task: 'hash',
  aggregationSet: 'zset',
  server: 'string',
  workers: 'hash',
  rate: 'hash',
  semaphore: 'zset',
  starts: 'hash',
  waiting: 'zset',
  /** `pending` or `active` */
  list: 'list',
  /** One of the sorted sets of tasks. */
  sorted: 'zset',
  schedule: 'hash',
  delayedGroups: 'zset',
  schedulerEntries: 'list',
  schedulerHistory: 'zset',
  cancellations: 'zset',
  cancellationDetails: 'hash',
  eventStream: 'stream',
  links: 'hash',
  outbox: 'hash',
  timers: 'zset',
  run: 'hash',
  runs: 'zset',
  linksProgress: 'hash',
  linksLease: 'string',
  batch: 'hash',
  batches: 'zset',
  part: 'hash',
  partMade: 'string',
  /** The tasks that wait for tasks. */
  waitingTasks: 'zset',
} as const;

export type KeyName = keyof typeof KEY_TYPES;

export interface ScriptShape {
  /** Path below lua/, without the ending. Default: the name in kebab-case. */
  readonly file?: string;
  /** The first KEYS, in order; the header of the file names the others. */
  readonly keys: readonly KeyName[];
  /** The first ARGV, in order. */
  readonly argv: readonly string[];
}

/** What lua/shared/links.lua checks before the first write of a script. */
const LINK_KEYS = [
  'links',
  'outbox',
  'timers',
  'waitingTasks',
  'pending',
  'scheduled',
  'archived',
  'completed',
] as const satisfies readonly KeyName[];

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
  ],
  argv: ['taskPrefix', 'now', 'nowNanos', 'leaseExpiry', 'take', 'count', 'limits', 'since'],
} as const satisfies ScriptShape;

const FINISH_SET = {
  keys: ['aggregationSets', 'aggregationSet', 'pending', 'scheduled', 'groups'],
  argv: ['taskPrefix', 'setDeadline', 'now', 'nowNanos', 'locks', 'resent', 'route'],
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

/**
 * The scripts, named after the broker methods they serve. The header of each file describes the
 * same KEYS and ARGV; test/redis/scripts.spec.ts compares registry, headers and calls.
 */
export const SCRIPTS = {
  enqueue: {
    keys: ['pending', 'scheduled', 'groups'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent', 'routes'],
  },
  exchange: EXCHANGE,
  exchangeLinked: { file: 'exchange', ...EXCHANGE },
  extendLeases: { keys: ['lease'], argv: ['expiry', 'count'] },
  writeResult: { keys: ['lease', 'task'], argv: ['id', 'result'] },
  forward: {
    keys: ['scheduled', 'retry', 'pending', 'groups', 'delayedGroups'],
    argv: ['taskPrefix', 'groupPrefix', 'now', 'nowNanos', 'limit'],
  },
  listExpiredLeases: { keys: ['lease', 'active'], argv: ['taskPrefix', 'cutoff', 'limit'] },
  repairActive: { keys: ['active', 'lease'], argv: ['expiry', 'from', 'length'] },
  deleteExpiredCompleted: { keys: ['completed'], argv: ['taskPrefix', 'now', 'limit'] },
  trimArchived: { keys: ['archived'], argv: ['taskPrefix', 'cutoff', 'keep', 'limit'] },
  claimDueSets: {
    keys: ['aggregationSets', 'groups'],
    argv: ['now', 'setDeadline', 'limit', 'mostTasks', 'policies'],
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
  listDelayedGroups: { keys: ['scheduled', 'groups', 'delayedGroups'], argv: ['groupPrefix', 'now'] },
  repairGroups: { keys: ['aggregationSets', 'groups'], argv: ['groupPrefix'] },
  writeServerState: { keys: ['server', 'workers'], argv: ['ttl', 'info'] },
  acquireTokens: { keys: ['semaphore'], argv: ['tokens', 'now', 'deadline'] },
  takeStarts: { keys: ['starts'], argv: ['most', 'window', 'nowNanos', 'wanted'] },
  wakeWaiting: { keys: ['waiting', 'retry', 'pending', 'paused'], argv: ['taskPrefix', 'nowNanos', 'count'] },
  describeQueue: {
    file: 'inspect/describe-queue',
    keys: [
      'pending',
      'active',
      'scheduled',
      'retry',
      'archived',
      'completed',
      'groups',
      'paused',
      'processedOn',
      'failedOn',
      'processed',
      'failed',
    ],
    argv: ['taskPrefix', 'groupPrefix', 'sample', 'counted', 'waitingGroup'],
  },
  groups: { file: 'inspect/groups', keys: ['groups'], argv: ['groupPrefix', 'cursor', 'count'] },
  listSorted: {
    file: 'inspect/list-sorted',
    keys: ['sorted'],
    argv: ['taskPrefix', 'size', 'bytes', 'offset', 'score', 'after', 'reverse'],
  },
  listUnsorted: {
    file: 'inspect/list-unsorted',
    keys: ['list', 'lease'],
    argv: ['taskPrefix', 'size', 'bytes', 'cutoff', 'seen'],
  },
  openSchedule: { keys: ['schedule'], argv: ['now', 'spec', 'keepFor'] },
  fire: FIRE,
  fireLinked: { file: 'fire', ...FIRE },
  writeSchedulerEntries: { keys: ['schedulerEntries'], argv: ['ttl'] },
  recordEnqueueEvent: { keys: ['schedulerHistory'], argv: ['time', 'event', 'most', 'keepFor'] },
  appendEvents: { keys: ['eventStream'], argv: ['nowMillis', 'most', 'keepFor', 'replaces'] },
  recordCancellation: {
    keys: ['cancellations', 'cancellationDetails'],
    argv: ['id', 'at', 'details', 'oldest', 'most', 'keepFor'],
  },
  findCancellations: { keys: ['cancellations', 'cancellationDetails'], argv: ['oldest'] },
  noteCancelled: { keys: ['cancellations', 'cancellationDetails'], argv: [] },
  moveTasks: {
    file: 'inspect/move-tasks',
    keys: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'groups', 'lease', 'delayedGroups'],
    argv: [
      'taskPrefix',
      'groupPrefix',
      'action',
      'now',
      'nowNanos',
      'state',
      'group',
      'at',
      'maxArchived',
      'waitingGroup',
    ],
  },
  updatePayload: { file: 'inspect/update-payload', keys: ['task'], argv: ['old', 'new', 'waitingGroup'] },
  beginDeletion: {
    file: 'inspect/begin-deletion',
    keys: [
      'active',
      'paused',
      'pending',
      'scheduled',
      'retry',
      'archived',
      'completed',
      'groups',
      'aggregationSets',
      'waitingTasks',
      'runs',
      'batches',
    ],
    argv: ['force', 'now'],
  },
  deleteSome: {
    file: 'inspect/delete-some',
    keys: ['pending', 'scheduled', 'retry', 'archived', 'completed', 'groups', 'aggregationSets', 'waitingTasks'],
    argv: ['taskPrefix', 'groupPrefix', 'limit'],
  },
  sweepQueue: {
    file: 'inspect/sweep-queue',
    keys: [
      'pending',
      'active',
      'scheduled',
      'retry',
      'archived',
      'completed',
      'groups',
      'aggregationSets',
      'waitingTasks',
    ],
    argv: ['guards'],
  },
  enqueueLinked: { file: 'links/enqueue-linked', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  deliver: { file: 'links/deliver', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  watch: { file: 'links/watch', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  check: { file: 'links/check', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  startRuns: {
    file: 'links/start-runs',
    keys: [...LINK_KEYS, 'runs'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'resent'],
  },
  growRun: { file: 'links/grow-run', keys: [...LINK_KEYS, 'run'], argv: ['taskPrefix', 'now', 'nowNanos', 'run'] },
  cancelRun: {
    file: 'links/cancel-run',
    keys: [...LINK_KEYS, 'run'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'run', 'reason'],
  },
  retryRun: { file: 'links/retry-run', keys: [...LINK_KEYS, 'run'], argv: ['taskPrefix', 'now', 'nowNanos', 'run'] },
  deleteRun: {
    file: 'links/delete-run',
    keys: [...LINK_KEYS, 'run', 'runs'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'run'],
  },
  describeRun: { file: 'links/describe-run', keys: ['run'], argv: ['size'] },
  listRuns: { file: 'links/list-runs', keys: ['runs'], argv: ['runPrefix', 'offset', 'last'] },
  keep: {
    file: 'links/keep',
    keys: [...LINK_KEYS, 'linksProgress', 'runs', 'batches'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'age', 'limit', 'bytes'],
  },
  leasePlace: { file: 'links/lease-place', keys: ['linksLease'], argv: ['owner', 'ttl', 'nowMillis'] },
  readWait: { file: 'links/read-wait', keys: ['task', 'archived'], argv: ['id', 'waitingGroup'] },
  acknowledge: { file: 'links/acknowledge', keys: ['outbox'], argv: [] },
  openBatch: {
    file: 'links/open-batch',
    keys: [...LINK_KEYS, 'batch', 'batches'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'definition'],
  },
  reserveMembers: {
    file: 'links/reserve-members',
    keys: ['batch', 'timers'],
    argv: ['batch', 'now', 'wait', 'byMember'],
  },
  addMembers: {
    file: 'links/add-members',
    keys: ['links', 'timers', 'pending', 'scheduled', 'part', 'partMade'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'batch', 'home', 'base', 'resent', 'routes'],
  },
  confirmMembers: {
    file: 'links/confirm-members',
    keys: [...LINK_KEYS, 'batch'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'batch'],
  },
  closeBatch: {
    file: 'links/close-batch',
    keys: [...LINK_KEYS, 'batch'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'batch'],
  },
  deleteBatch: {
    file: 'links/delete-batch',
    keys: [...LINK_KEYS, 'batch', 'batches'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'batch'],
  },
  readBatch: { file: 'links/read-batch', keys: ['batch'], argv: [] },
  getTask: {
    file: 'inspect/get-task',
    keys: ['task', 'scheduled', 'retry', 'waitingTasks'],
    argv: ['id', 'waitingGroup'],
  },
} as const satisfies Record<string, ScriptShape>;

export type ScriptName = keyof typeof SCRIPTS;
