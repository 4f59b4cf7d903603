/** Fixed texts, not symbols or random ids: two copies of this package in one process see each other's decorators. */
export const OWN_METADATA = 'nestjs-asynq:';
export const TASK_HANDLER_METADATA = 'nestjs-asynq:task-handlers';
export const PERIODIC_SOURCE_METADATA = 'nestjs-asynq:periodic-source';
export const TASK_AGGREGATOR_METADATA = 'nestjs-asynq:task-aggregators';
export const TASK_EVENT_METADATA = 'nestjs-asynq:task-events';
export const CONSOLE_ACTION_METADATA = 'nestjs-asynq:console-actions';
export const TASK_PARAMS_METADATA = 'nestjs-asynq:task-params';
export const TASKS_TOKEN_METADATA = 'nestjs-asynq:tasks-token';
/** On a prototype: its methods that have a decorator of ours. */
export const DECLARED_METADATA = 'nestjs-asynq:declared';
/** On the global object: the classes with such methods. */
export const DECLARED_CLASSES_METADATA = 'nestjs-asynq:declared-classes';
export const INJECTED_TASKS_METADATA = 'nestjs-asynq:injected-tasks';

/** The name of the unnamed connection. */
export const DEFAULT_CONNECTION = 'default';

/** What `getType()` returns in guards, interceptors, filters and parameter decorators while a task runs. */
export const ASYNQ_CONTEXT_TYPE = 'asynq';

/**
 * Nest's own metadata keys. They are the same since Nest 6, but Nest 11 and 12 export them from different modules, and a static
 * import from one of these would fail on the other.
 */
export const NEST_METADATA = {
  guards: '__guards__',
  interceptors: '__interceptors__',
  pipes: '__pipes__',
  filters: '__exceptionFilters__',
  caughtTypes: '__filterCatchExceptions__',
  routeArguments: '__routeArguments__',
  customRouteArgument: '__customRouteArgs__',
  parameterTypes: 'design:paramtypes',
  /** Marks classes to which Nest applies request-scoped global enhancers, as it does to controllers. */
  entryProvider: '__entryProvider__',
} as const;

/**
 * Kinds of parameters with Nest's numbers (RouteParamtypes), so that pipes treat a payload like an HTTP body: a ValidationPipe
 * validates `body` and ignores what pipes call `custom` (every other number used here).
 */
export const PARAM_TYPE = { task: 0, steps: 1, payload: 3, bytes: 12 } as const;
