/** @module nestjs-asynq */
// The module and what it provides
export { AsynqModule, type AsynqModuleAsyncOptions } from './nest/asynq.module.js';
export type {
  AsynqModuleExtras,
  AsynqModuleOptions,
  AsynqOptionsFactory,
} from './nest/connection/asynq-module.options.js';
export { AsynqServer } from './nest/asynq-server.js';
export { AsynqTaskEvents, type FleetOptions } from './nest/events/asynq-task-events.js';
export { AsynqClient } from './nest/asynq-client.js';
export type { AsynqClientOptions } from './client/client-options.js';
export type {
  AggregatedTask,
  DefinedItem,
  EnqueueManyOptions,
  EnqueueOptions,
  NamedItem,
  ResultCallOptions,
  TaskWithResult,
} from './client/types.js';
export type { FollowOptions, ResultOptions } from './results/options.js';
export type { TaskUpdate } from './results/updates.js';
export type { AttemptInfo, AttemptList } from './task/attempts.js';
export type { TaskLog, TaskLogLine, TaskProgress } from './task/notes.js';
export type { EnqueueOutcome, EnqueueResult } from './enqueue/enqueue-result.js';
export { AsynqBatch, type BatchOutcome } from './batches/batch.js';
export type { BatchRef } from './batches/batches.js';
export type { BatchOptions, BatchTask, CallbackOptions } from './batches/options.js';
export { AsynqSemaphores } from './limits/semaphores.js';
export type { Semaphore, SemaphoreRunOptions, TokenHolder } from './limits/semaphore.js';
export { AsynqInspector } from './inspector/inspector.js';
export type { CancelOptions } from './inspector/cancel-options.js';
export type {
  BulkArchiveOptions,
  BulkOptions,
  BulkProgress,
  BulkResult,
  CancelAllOptions,
  CountOptions,
  MovableState,
} from './inspector/bulk.js';
export type { FieldValue, TaskCriteria } from './inspector/criteria.js';
export type { BatchListOptions } from './inspector/batches.js';
export type { DeleteQueueOptions } from './inspector/delete-queue.js';
export type { FairKeyInfo, FairKeyList, FairKeyListOptions, KeyHold, KeyLimit } from './inspector/fair-keys.js';
export type { ListOptions, PageOptions } from './inspector/list-options.js';
export type { ArchiveOptions, MoveOptions } from './inspector/move-options.js';
export type { UpdatePayloadOptions } from './inspector/single-task.js';
export type { SearchOptions, SearchResult } from './inspector/search.js';
export type { Prerequisite } from './broker/links.js';
export type {
  ExplainedReason,
  LimitHolder,
  OpenPrerequisite,
  ReachedLimit,
  ServerRef,
  SuspendedStep,
  TaskExplanation,
  TaskReason,
} from './inspector/explain/reasons.js';
export type { PublishedLimits } from './broker/server-profile.js';
export type { HandlerStepListOptions } from './inspector/steps.js';
export type {
  HandlerStepInfo,
  HandlerStepKind,
  HandlerStepList,
  HandlerStepState,
  SignalInfo,
} from './inspector/handler-step.js';
export type { TaskWait, WaitedFor } from './inspector/waits.js';
export type { LockInfo, LockList, LockListOptions, LockToRelease } from './inspector/locks.js';
export type { DebounceOptions, DuplicatePolicy, LockEnd, UniqueOptions } from './task/repeats.js';
export type { EnqueueEvent, PeriodicEntry } from './inspector/periodic-entries.js';
export type { DailyStats, QueueInfo, RunningServer, RunningTask, TaskList } from './inspector/views.js';
export type { DamagedEntry, GroupSize, RedisInfo, RedisNode } from './broker/inspection.js';
export type { CancelOutcome } from './broker/cancellation.js';
export {
  ASYNQ_BROKER,
  getAsynqBrokerToken,
  getAsynqClientToken,
  getAsynqHealthIndicatorToken,
  getAsynqHealthToken,
  getAsynqInspectorToken,
  getAsynqSemaphoresToken,
  getAsynqSchedulerToken,
  getAsynqServerToken,
  getAsynqTaskEventsToken,
} from './nest/nest.tokens.js';
export { getAsynqTasksToken } from './nest/calls/injected-tasks.js';
export { InjectAsynqClient } from './nest/inject-asynq-client.decorator.js';

// Handlers as methods that enqueue
export { InjectTasks } from './nest/calls/inject-tasks.decorator.js';
export type { CallOptions, ResultsOf, TasksOf } from './nest/calls/tasks-of.js';

// Health and operations
export { AsynqHealth, type HealthReport } from './nest/health/asynq-health.js';
export { AsynqHealthIndicator, type AsynqHealthResult } from './nest/health/asynq-health-indicator.js';
export type {
  LivenessOptions,
  OutboxThresholds,
  QueueThresholds,
  ReadinessOptions,
} from './nest/health/health-options.js';
export { AsynqOperationsModule } from './nest/operations/asynq-operations.module.js';
export type { AsynqOperationsOptions } from './nest/operations/operations.options.js';

// Handlers
export type { EventStreamOptions } from './nest/events/event-stream.options.js';
export type { ConsoleAction, ConsoleActionFilter, ConsoleActionName, ConsoleOutcome } from './events/console-action.js';
export type { FleetError, FleetTaskEvent } from './event-streams/fleet-event.js';
export { OnConsoleAction, type OnConsoleActionOptions } from './nest/decorators/on-console-action.decorator.js';
export {
  OnTaskEvent,
  type OnTaskEventOptions,
  type TaskEventDecorator,
} from './nest/decorators/on-task-event.decorator.js';
export { Payload } from './nest/decorators/payload.decorator.js';
export type {
  PayloadFieldDecorator,
  PayloadFieldName,
  PayloadFieldValue,
  WrongField,
} from './nest/decorators/payload-field-types.js';
export { TaskAggregator, type TaskAggregatorOptions } from './nest/decorators/task-aggregator.decorator.js';
export { Steps } from './nest/decorators/steps.decorator.js';
export { TaskCtx } from './nest/decorators/task-ctx.decorator.js';
export type { BatchHandlerOptions } from './nest/decorators/batch-option.js';
export type { BatchHandlerDecorator, BatchResult } from './nest/decorators/batch-handler-types.js';
export type { TaskHandlerDecorator, WrongHandler } from './nest/decorators/handler-types.js';
export { TaskHandler, type TaskHandlerOptions, type ValidatePolicy } from './nest/decorators/task-handler.decorator.js';
export {
  getTaskContext,
  getTaskContexts,
  getTaskPayload,
  isAsynqContext,
  isBatchContext,
} from './nest/execution/asynq-context.js';
export type { InvalidPayloadPolicy } from './nest/execution/invalid-payload.js';

// Periodic tasks
export { PeriodicTask, type PeriodicTaskHandlerOptions } from './nest/decorators/periodic-task.decorator.js';
export {
  PeriodicTaskSource,
  type PeriodicTaskSourceOptions,
} from './nest/decorators/periodic-task-source.decorator.js';
export { AsynqScheduler, type PeriodicTaskInfo, type SchedulerStatus } from './scheduler/scheduler.js';
export type { MissedPolicy, OverlapPolicy, PeriodicTaskOptions, PlanOptions } from './scheduler/options.js';
export type { PeriodicTaskConfig, PeriodicTaskConfigs } from './scheduler/source-poller.js';

// Tasks
export { defineSignal, type SignalDefinition, type SignalOf } from './task/signal.js';
export type {
  StepCallOptions,
  EachOptions,
  StepRunOptions,
  StepRetry,
  TaskSteps,
  WaitForOptions,
} from './task/steps.js';
export type { StepsOptions } from './task/steps-options.js';
export {
  defineTask,
  type PayloadOf,
  type ReceivedOf,
  type ResultOf,
  type TaskDefinition,
  type TaskHandling,
} from './task/definition.js';
export type { AcknowledgeOptions } from './task/acknowledge.js';
export type { ArchiveSettings, QueueSettings } from './task/queue-settings.js';
export type { PayloadVersions } from './task/payload-versions.js';
export type { Jsonify, JsonPayload, NotJson, PayloadIsNotJson, TaskTypeFor } from './task/jsonify.js';
export type { MissingPayload } from './task/task-types.js';
export { bytesCodec, jsonCodec, type Decoded, type PayloadCodec } from './task/codec.js';
export type { IsFailure, RetryDelay, TaskContext } from './task/context.js';
export type { BytesEncoding } from './task/bytes-json.js';
export type { BatchInfo, BatchState, MemberOptions, Payloads, TaskBatch } from './task/batch.js';
export type { TaskCrash, TaskInfo, TaskInfoJson } from './task/info.js';
export type { TaskOptions } from './task/options.js';
export type {
  CallLinks,
  DefinedPrerequisite,
  DefinitionLinks,
  FailurePolicy,
  KeyFunction,
  MissingPolicy,
  TaskIdentity,
  TaskPrerequisite,
  TimeoutPolicy,
  WaitOptions,
} from './task/links.js';
export { PostponeTask } from './task/postpone.js';
export { defaultRetryDelay } from './task/retry-delay.js';
export { duration, type Duration, type DurationText } from './duration.js';
export type { TaskState } from './wire/states.js';

// Workflows
export { workflow, Workflow } from './workflows/workflow.js';
export { chain, LooseStep, parallel, step } from './workflows/shapes.js';
export type { WorkflowDetails, WorkflowInfo, WorkflowListOptions, WorkflowStepInfo } from './inspector/workflows.js';
export { WorkflowRun } from './workflows/workflow-run.js';
export type { DoneOptions } from './links/done-options.js';
export type { StartResult, WorkflowItem } from './workflows/workflows.js';
export type { StepOutcome, WorkflowOutcome } from './workflows/outcome.js';
export type { RunState, StepState } from './broker/workflows.js';
export type { AddStepOptions, WorkflowContext } from './task/workflow-context.js';
export type { NestedOptions, RunOptions, StartOptions, StepOptions, StepTaskOptions } from './workflows/types.js';

// Transactions
export { clsTransactions, type ClsTransactionsOptions } from './transactions/cls-transactions.js';
export { sequelizeTransactions, type SequelizeTransactionsOptions } from './transactions/sequelize-transactions.js';
export { typeormTransactions, type TypeormTransactionsOptions } from './transactions/typeorm-transactions.js';
export type { FindProvider, Transactions, TransactionScope } from './transactions/transactions.js';

// Redaction
export { DEFAULT_REDACTION } from './redaction/default-rule.js';
export type { RedactedParts, Redaction, RedactionFunction, RedactionRule } from './redaction/rules.js';

// The server and its events
export type {
  GroupOptions,
  GroupOverride,
  GroupedTask,
  QueueOptions,
  ServerOptions,
  ServerStatus,
} from './server/index.js';
export type { ThreadOptions } from './threads/options.js';
export type { Limits, TaskLimits } from './task/limits.js';
export type {
  AsynqEventMap,
  AsynqEventName,
  AsynqEvents,
  EndedWait,
  FinishedStep,
  PeriodicRef,
  GroupRef,
  StepOutcomeKind,
  StepWork,
  TaskOutcome,
  TaskOutcomeKind,
  TaskRecovery,
  TaskRef,
} from './events/events.js';
export type {
  EndedAttempt,
  TaskAttempt,
  TaskEvent,
  TaskEventCommon,
  TaskEventFilter,
  TaskEventMap,
  TaskEventName,
} from './events/task-events.js';

// Connections and brokers
export type { ConnectionInput } from './broker/redis/connection/connection-options.js';
export type { Broker } from './broker/broker.js';
export { ManualClock, SystemClock, type Clock, type ClockTimer } from './clock.js';

// Errors
export {
  AcknowledgeTimeoutError,
  AggregationSetLostError,
  ArchiveFullError,
  AsynqError,
  BatchAddError,
  BatchEndedError,
  BatchNotFoundError,
  BatchRunningError,
  BatchTimeoutError,
  BrokerUnavailableError,
  ClosedError,
  DeadlineExceededError,
  DuplicateTaskError,
  GlobalEnhancerError,
  HandlerNotFoundError,
  InvalidHandlerError,
  InvalidNoteError,
  InvalidOptionError,
  InvalidPayloadError,
  InvalidScheduleError,
  InvalidStepError,
  InvalidTaskError,
  InvalidWorkflowError,
  LeaseExpiredError,
  PeriodicEntryNotFoundError,
  type NotAdded,
  NotAMemberError,
  NotAStepError,
  PrerequisiteNotFoundError,
  QueueFullError,
  QueueNotEmptyError,
  QueueNotFoundError,
  type LockHolder,
  type RefusedTask,
  ResultNotKeptError,
  ResultTimeoutError,
  RevokeTask,
  SchedulerStateError,
  ServerStateError,
  ShutdownError,
  SignalTimeoutError,
  SkipRetry,
  StepFailedError,
  StepNotStoredError,
  StepsChangedError,
  TaskCanceledError,
  TaskCrashedError,
  TaskExpiredError,
  TaskFailedError,
  TaskIdConflictError,
  TaskNotFoundError,
  TaskStateError,
  TaskSuspended,
  TaskUndoneError,
  TestingError,
  ThreadDiedError,
  UndecodableMessageError,
  WorkflowNotFoundError,
  WorkflowStateError,
  WorkflowTimeoutError,
} from './errors.js';
