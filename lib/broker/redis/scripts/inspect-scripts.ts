import type { ScriptShape } from './script-shape.js';

/** Where tasks of a queue are stored besides `pending` and `active`. */
const STORED = ['scheduled', 'retry', 'archived', 'completed', 'groups', 'aggregationSets', 'waitingTasks'] as const;

/** The keys of a fair queue that have tasks in lines. */
const TURNS = ['fairRing', 'fairHeld'] as const;

/** The scripts of lua/inspect/, which serve the inspector. */
export const INSPECT_SCRIPTS = {
  listDelayedGroups: { keys: ['scheduled', 'groups', 'delayedGroups'], argv: ['groupPrefix', 'now'] },
  repairGroups: { keys: ['aggregationSets', 'groups'], argv: ['groupPrefix'] },
  writeServerState: { keys: ['server', 'workers'], argv: ['ttl', 'info', 'known', 'ended'] },
  acquireTokens: { keys: ['semaphore'], argv: ['tokens', 'now', 'deadline'] },
  moveTokens: { keys: ['semaphore'], argv: ['deadline'] },
  takeStarts: { keys: ['starts'], argv: ['most', 'window', 'nowNanos', 'wanted', 'allowance'] },
  takeCosts: { keys: ['starts'], argv: ['most', 'window', 'nowNanos', 'allowance'] },
  correctCosts: { keys: ['starts'], argv: ['window', 'nowNanos'] },
  wakeWaiting: {
    keys: ['waiting', 'retry', 'pending', 'paused', 'waitlists', 'held'],
    argv: ['taskPrefix', 'nowNanos', 'count', 'waitlist'],
  },
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
      'fairRing',
      'fairHeld',
      'fairTotal',
      'held',
    ],
    argv: ['taskPrefix', 'groupPrefix', 'sample', 'counted', 'waitingGroup', 'fairGroup'],
  },
  groups: { file: 'inspect/groups', keys: ['groups'], argv: ['groupPrefix', 'cursor', 'count'] },
  listSorted: {
    file: 'inspect/list-sorted',
    keys: ['sorted', 'retry', 'held'],
    argv: ['taskPrefix', 'size', 'bytes', 'offset', 'score', 'after', 'reverse'],
  },
  listUnsorted: {
    file: 'inspect/list-unsorted',
    keys: ['list', 'lease'],
    argv: ['taskPrefix', 'size', 'bytes', 'cutoff', 'seen'],
  },
  listLines: {
    file: 'inspect/list-lines',
    keys: ['fairRing', 'fairShares'],
    argv: ['taskPrefix', 'linePrefix', 'size', 'bytes', 'offset', 'source', 'scan', 'ends', 'done', 'key', 'score'],
  },
  listKeys: { file: 'inspect/list-keys', keys: [], argv: ['linePrefix', 'cursor', 'count', 'sized'] },
  describeKeys: {
    file: 'inspect/describe-keys',
    keys: ['fairHeld', 'fairShares', 'lease'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'linePrefix', 'runningPrefix', 'ratePrefix', 'named'],
  },
  findCancellations: { keys: ['cancellations', 'cancellationDetails'], argv: ['oldest'] },
  noteCancelled: { keys: ['cancellations', 'cancellationDetails'], argv: [] },
  moveTasks: {
    file: 'inspect/move-tasks',
    keys: [
      'pending',
      'scheduled',
      'retry',
      'archived',
      'completed',
      'groups',
      'lease',
      'delayedGroups',
      'fairTotal',
      'held',
    ],
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
      'fairGroup',
    ],
  },
  updatePayload: { file: 'inspect/update-payload', keys: ['task'], argv: ['old', 'new', 'waitingGroup', 'fairGroup'] },
  beginDeletion: {
    file: 'inspect/begin-deletion',
    keys: ['active', 'paused', 'pending', ...STORED, 'runs', 'batches', ...TURNS],
    argv: ['force', 'now'],
  },
  deleteSome: {
    file: 'inspect/delete-some',
    keys: ['pending', ...STORED, ...TURNS],
    argv: ['taskPrefix', 'groupPrefix', 'limit', 'fairGroup'],
  },
  sweepQueue: {
    file: 'inspect/sweep-queue',
    keys: ['pending', 'active', ...STORED, ...TURNS],
    argv: ['guards'],
  },
  readPosition: {
    file: 'inspect/read-position',
    keys: ['task', 'pending', 'paused', 'lease', 'retry', 'active'],
    argv: ['id', 'counted', 'waitingPrefix'],
  },
  readSteps: { file: 'inspect/read-steps', keys: ['task'], argv: ['most', 'budget'] },
  startsLeft: { file: 'inspect/starts-left', keys: ['starts'], argv: ['most', 'window', 'nowNanos'] },
  observeServer: { file: 'inspect/observe-server', keys: ['server', 'workers', 'profile'], argv: [] },
  getTask: {
    file: 'inspect/get-task',
    keys: ['task', 'scheduled', 'retry', 'waitingTasks'],
    argv: ['id', 'waitingGroup', 'fairGroup', 'chunkBytes'],
  },
} as const satisfies Record<string, ScriptShape>;
