/** @module nestjs-asynq/testing */
export { AsynqTester, type RunOptions } from './asynq-tester.js';
export { fakeDataSource } from './fake-data-source.js';
export { InMemoryBroker } from './in-memory-broker.js';
export { InMemoryOutbox } from './in-memory-outbox.js';
export type { WorkOptions, WorkOutcome } from './lone-task.js';
export { RunSummary, type Aggregation, type LeftReason, type LeftTasks } from './run-summary.js';
export type { MethodName, MethodPayload, MethodResult } from './task-choice.js';
export type { WaitingTask } from './waiting-task.js';
export type { TaskFields, TaskFilter, TestTask } from './task-filter.js';
