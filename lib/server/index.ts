/** What other rooms may use of the server. */
export type { ActiveTask } from './attempt/active-task.js';
export { type BatchHandling, FailedTask, type SingleHandlerEntry, type TaskHandlerEntry } from './attempt/handler.js';
export type { ByHand } from './by-hand.js';
export type { QueueOptions } from './fetching/queue-options.js';
export type { GroupedTask, TaskAggregatorEntry } from './groups/aggregators.js';
export type { GroupOptions, GroupOverride } from './groups/group-options.js';
export type { ServerOptions } from './options.js';
export { Server } from './server.js';
export type { ServerStats } from './server-stats.js';
export type { ServerStatus } from './server-status.js';
