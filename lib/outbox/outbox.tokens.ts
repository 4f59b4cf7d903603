/** Tokens inside one AsynqOutboxModule. */
export const RAW_OUTBOX_OPTIONS = 'ASYNQ_OUTBOX_OPTIONS';
export const RESOLVED_OUTBOX_OPTIONS = 'ASYNQ_RESOLVED_OUTBOX_OPTIONS';
