/** Tokens inside one AsynqModule. Every connection has its own module, so they contain no name. */
export const RAW_MODULE_OPTIONS = 'ASYNQ_MODULE_OPTIONS';
export const RESOLVED_MODULE_OPTIONS = 'ASYNQ_RESOLVED_MODULE_OPTIONS';
export const CONNECTION = 'ASYNQ_CONNECTION';
/** The token of events and traces. */
export const HOOKS = 'ASYNQ_HOOKS';
/** The token of what reports queues without a server. */
export const QUEUE_WATCH = 'ASYNQ_QUEUE_WATCH';
/** The token of what carries messages between linked tasks. */
export const RELAY = 'ASYNQ_RELAY';
