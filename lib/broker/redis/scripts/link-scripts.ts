import type { KeyName, ScriptShape } from './script-shape.js';

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

/** The scripts of lua/links/: waits, runs and batches. */
export const LINK_SCRIPTS = {
  enqueueLinked: { file: 'links/enqueue-linked', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  deliver: { file: 'links/deliver', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  watch: { file: 'links/watch', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  check: { file: 'links/check', keys: LINK_KEYS, argv: ['taskPrefix', 'now', 'nowNanos'] },
  startRuns: {
    file: 'links/start-runs',
    keys: [...LINK_KEYS, 'runs', 'running'],
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
  postpone: { file: 'links/postpone', keys: ['outbox'], argv: ['until'] },
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
  callTasks: {
    file: 'links/call-tasks',
    keys: [...LINK_KEYS, 'lease', 'task'],
    argv: ['taskPrefix', 'now', 'nowNanos', 'id'],
  },
  readBatch: { file: 'links/read-batch', keys: ['batch'], argv: [] },
} as const satisfies Record<string, ScriptShape>;
