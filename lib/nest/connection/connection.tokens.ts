/** Tokens inside one AsynqModule: every connection has its own module, so they need no name in them. */
export const RAW_MODULE_OPTIONS = 'ASYNQ_MODULE_OPTIONS';
export const RESOLVED_MODULE_OPTIONS = 'ASYNQ_RESOLVED_MODULE_OPTIONS';
export const CONNECTION = 'ASYNQ_CONNECTION';
/** Who is told of what happens: events and traces. */
export const HOOKS = 'ASYNQ_HOOKS';
