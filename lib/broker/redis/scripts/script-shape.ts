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
  profile: 'string',
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
  waitlists: 'set',
  held: 'zset',
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
  running: 'hash',
  linksProgress: 'hash',
  linksLease: 'string',
  batch: 'hash',
  batches: 'zset',
  part: 'hash',
  partMade: 'string',
  senders: 'hash',
  fairRing: 'zset',
  fairHeld: 'zset',
  fairShares: 'hash',
  fairSlots: 'hash',
  fairTotal: 'string',
  /** Of a unique task. */
  lock: 'string',
  crewCalled: 'string',
  crewCrowded: 'string',
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
