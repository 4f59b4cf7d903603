/** The texts of errors this room raises. Each names the thing, the value and the remedy. */

const CONNECTION_FORMS =
  "{ host, port } or other ioredis options, a URL such as 'redis://localhost:6379', { cluster: [...] }, " +
  "{ sentinels: [...], name }, an ioredis client, or 'memory' for tests and trials";

const connectionCall = (name: string): string => (name === 'default' ? 'AsynqModule' : `AsynqModule "${name}"`);

export const missingConnection = (name: string): string =>
  `${connectionCall(name)}: the option connection is missing; give ${CONNECTION_FORMS}`;

export const notForRoot = (module: string): string =>
  `${module} is imported without options; import ${module}.forRoot({ … })`;

export const noConnection = (module: string): string =>
  `${module} has no connection to report on: this application imports no AsynqModule.forRoot (or forRootAsync)`;

export const optionsMissing = (method: string): string =>
  `AsynqModule.${method} needs an object with options, at least the connection: ${CONNECTION_FORMS}`;

export const noOptionsSource =
  'AsynqModule.forRootAsync needs one of useFactory, useClass or useExisting, which provides the options';

export const misplacedExtra = (key: string): string =>
  `the module option "${key}" cannot come from a factory: Nest needs it before the factory runs; ` +
  `put it beside useFactory (or useClass, useExisting) in AsynqModule.forRootAsync`;

export const connectionTwice = (name: string): string =>
  `AsynqModule is registered twice for the connection "${name}"; call forRoot once (isGlobal: true shares it), ` +
  'or give the second one another name';

export const unknownConnection = (what: string, name: string, known: string, near: string | undefined): string =>
  `${what} is for the connection "${name}", which no AsynqModule.forRoot names; ` +
  (near ? `did you mean "${near}"? (known: ${known})` : `known are ${known || 'none'}`);

export const blankPattern = (what: string): string =>
  `${what}: @TaskHandler needs a task type (or a prefix of types) that is not blank`;

export const wildcardPattern = (what: string, pattern: string, beginning: string): string =>
  `${what}: @TaskHandler("${pattern}"): there are no wildcards; ` +
  (beginning === ''
    ? 'write a prefix that the types share, as "mail:" of "mail:welcome"'
    : `a type is also a prefix of others: write "${beginning}"`);

export const notATask = (what: string, value: string): string =>
  `${what}: @TaskHandler takes a task type or the result of defineTask, not ${value}`;

export const notAMethod = (what: string, decorator: string): string =>
  `${what}: @${decorator} belongs on a method of a provider or controller, not on a class, a property or an accessor`;

export const standardDecorators = (decorator: string): string =>
  `@${decorator} is called as a standard decorator, which Nest does not know; set experimentalDecorators and emitDecoratorMetadata in ` +
  'tsconfig.json, and have your test runner read them (Vitest: SWC)';

export const onStaticMethod = (what: string, decorator: string): string =>
  `${what}: @${decorator} cannot be on a static method, which has no provider to run on; make it an instance method`;

export const unnamedMethod = (what: string, decorator: string): string =>
  `${what}: @${decorator} needs a method with a text name, not a symbol`;

export const hiddenMethod = (label: string, decorator: string): string =>
  `${label}: a decorator above @${decorator} replaces the method, and so hides it; put @${decorator} above that decorator, or have ` +
  'that one copy the metadata of the method';

export const notAParameter = (decorator: string, what: string): string =>
  `@${decorator}() belongs on a parameter of a handler method, not on the constructor of ${what}`;

export const bareParameter = (label: string, position: number): string =>
  `${label}: parameter ${position} has no decorator, and others have one, so it would get nothing; write @Payload() or @TaskCtx() before ` +
  'it, or leave out all decorators: then the method gets the payload and the TaskContext';

export const noField = (what: string, type: string, value: string): string =>
  `${what}: @Payload with the definition of "${type}" needs the name of a field, not ${value}; @Payload() is the whole payload`;

export const notADefinition = (what: string, field: string, value: string): string =>
  `${what}: @Payload(…, '${field}') takes the result of defineTask before the field, not ${value}`;

export const fieldOfAnother = (what: string, field: string, task: string, type: string): string =>
  `${what} handles "${type}", and @Payload(…, '${field}') takes a field of "${task}"; give @Payload the definition that @TaskHandler has`;

export const twoHandlers = (pattern: string, connection: string, first: string, second: string): string =>
  `two handlers for the task type "${pattern}" of the connection "${connection}": ${first} and ${second}; ` +
  (first === second ? 'the class is provided twice: export it from one module instead' : 'keep one of them');

export const blankGroup = (what: string): string =>
  `${what}: @TaskAggregator takes a prefix of group names that is not blank, or nothing for every group`;

export const twoAggregators = (pattern: string, connection: string, first: string, second: string): string =>
  `two aggregators for ${pattern === '' ? 'every group' : `the groups "${pattern}…"`} of the connection "${connection}": ` +
  `${first} and ${second}; ` +
  (first === second ? 'the class is provided twice: export it from one module instead' : 'keep one of them');

export const enhancedAggregator = (label: string, kind: string): string =>
  `${label}: ${kind} do not apply to a @TaskAggregator method, which runs for a group and not for a task; ` +
  'put them on the handler of the aggregated task';

export const enhancedListener = (decorator: string, label: string, kind: string): string =>
  `${label}: ${kind} do not apply to an ${decorator} method, which receives events and handles no task; remove them`;

export const decoratedListener = (decorator: string, label: string): string =>
  `${label}: an ${decorator} method is called with the event; remove the decorators of its parameters`;

export const scopedListener = (decorator: string, label: string): string =>
  `${label}: ${decorator} belongs on a provider with one instance, and this one has an instance per request (by its scope, or by ` +
  'that of a provider it injects); move the method to a provider with the default scope';

export const noEvents = (what: string): string => `${what} needs at least one event`;

export const unknownEvent = (what: string, event: string, remedy: string): string =>
  `${what}: there is no task event ${event}; ${remedy}`;

export const decoratedParameters = (label: string): string =>
  `${label}: a @TaskAggregator method is called with (group, tasks); remove the decorators of its parameters`;

export const noAggregatedTask = (label: string, group: string, value: string): string =>
  `${label} returned ${value} for group "${group}"; it must return the task to enqueue: ` +
  '{ type, payload, options } or { task, payload, options }';

export const unreachableEnhancer = (handler: string, kind: string, enhancer: string): string =>
  `${handler}: Nest creates no ${kind} ${enhancer} for it, because its provider is a value or a factory; ` +
  `give an instance (new ${enhancer}(...)), or provide the handler as a class`;

export const unreachableScoped = (handler: string): string =>
  `${handler}: the request-scoped guards, interceptors, pipes or filters of the application cannot be created for it, because its ` +
  'provider is a value or a factory; provide the handler as a class';

const forHttp = (kind: string): string => {
  const begin = kind === 'guard' ? 'return true' : 'return next.handle()';
  const leave = 'leave those of the application out: globalEnhancers: false of AsynqModule';
  return kind === 'pipe' ? leave : `begin it with if (isAsynqContext(context)) ${begin}, or ${leave}`;
};

export const guardRefused = (guard: string, type: string, isGlobal: boolean): string =>
  `Forbidden resource: the ${isGlobal ? 'global ' : ''}guard ${guard} refused task "${type}"` +
  (isGlobal ? `; if it is for HTTP, ${forHttp('guard')}` : '');

export const globalEnhancerFailed = (
  { kind, name }: { readonly kind: string; readonly name: string },
  type: string,
  message: string,
): string => `the global ${kind} ${name} failed for task "${type}": ${message}; if it is for HTTP, ${forHttp(kind)}`;

export const noServer = (name: string): string =>
  `the connection "${name}" has no server: its option server is false, so this process only produces tasks`;

export const scopedSource = (what: string): string =>
  `${what}: @PeriodicTaskSource belongs on a provider with one instance, and this one has an instance per request; change its scope`;

export const notATasksClass = (value: string): string =>
  `@InjectTasks takes a class with @TaskHandler methods, not ${value}` +
  (value === 'undefined' ? '; where two files import each other, give forwardRef(() => TheClass)' : '');

export const noHandlersIn = (tasks: string): string =>
  `@InjectTasks(${tasks}): no method of ${tasks} has @TaskHandler or @PeriodicTask, so there is nothing to call`;

export const reservedName = (label: string): string =>
  `${label} cannot be called to enqueue, because injected tasks have, or must not have, a method of this name; rename the handler`;

export const notAHandler = (label: string, handlers: readonly string[]): string =>
  `${label} is no handler, so a call of it enqueues nothing; handlers are ${handlers.join(', ')}`;

export const manyTypes = (label: string, types: readonly string[]): string =>
  `${label} handles several task types (${types.join(', ')}), so a call of it does not say which; ` +
  'enqueue by the type: asynq.enqueue(type, payload)';

export const payloadInParts = (label: string): string =>
  `${label} takes no whole payload as its first parameter, so a call cannot be typed; take @Payload() there, ` +
  'or enqueue by the type: asynq.enqueue(type, payload), and in a test tasks.work(type, payload)';

export const payloadNotFirst = (label: string): string =>
  `${label} takes the payload behind another parameter, so a call would be typed by that one; put @Payload() first`;

export const optionsInCall = (label: string): string =>
  `${label} is called with the payload alone; give options before: with(options)`;

export const bytesOfVersion = (label: string): string =>
  `${label} takes the stored bytes, which upgrade of its definition cannot change; take the decoded payload, ` +
  'or leave version and upgrade out of the definition';

export const wrongVersion = (text: string): string =>
  `the header asynq-payload-version is "${text}"; it must be a whole number from 1 on`;

export const wrongValidate = (what: string, value: string): string =>
  `${what}: validate must be "handler" or "both", not ${value}`;

export const pipeNotMade = (label: string, pipe: string, reason: string): string =>
  `${label}: the pipe ${pipe} cannot be made where the task is called (validate: 'both'): ${reason}; ` +
  `give an instance (new ${pipe}(…)), or make ${pipe} a provider here`;

export const noPipe = (label: string): string =>
  `${label} has validate: 'both', and no pipe on its payload, its method or its class, so there is nothing to check where it is ` +
  'called; give @Payload(ValidationPipe), as pipes of the application run only before the handler';

export const wrongWait = (name: string, value: string): string =>
  `wait of ${name} must be from 0 to 30 seconds, not ${value}`;

export const neverFull = (what: string, limit: string, most: number, size: number): string =>
  `${what}: ${limit} ${most} counts tasks, and is less than the size of its batches, ${size}, so none would ever be full; ` +
  `give at least ${size}, or smaller batches`;

export const batchNotCalled = (label: string): string =>
  `${label} is a batch handler, which takes the payloads of many tasks, so a call of it cannot be typed; ` +
  'enqueue by the definition or the type: asynq.enqueue(task, payload)';

export const batchValidate = (what: string): string =>
  `${what}: validate "both" is for handlers that are called to enqueue, and a batch handler cannot be; leave it out`;

export const batchBytes = (label: string): string =>
  `${label} is a batch handler, whose payloads are an array; take the bytes from the contexts: tasks.map(({ payload }) => payload)`;

export const batchSteps = (label: string): string =>
  `${label} is a batch handler, and steps are those of one task; handle the tasks one by one, without batch`;

export const batchDurable = (label: string): string =>
  `${label} is a batch handler with a durable instance, which belongs to one tenant, and the tasks of a call may belong to several; ` +
  'change the scope of its class, or handle the tasks one by one';

export const batchAggregator = (label: string): string =>
  `${label} has @TaskAggregator and a batch handler on one method: the first gets (group, tasks), the second (payloads, contexts); ` +
  'make it two methods';

export const wrongBatchResults = (label: string, got: string, tasks: number): string =>
  `${label} returned ${got} for ${tasks} ${tasks === 1 ? 'task' : 'tasks'}; it must return an array with one result per task, in their order ` +
  '(an Error for a task that has failed), or nothing';

export const contextOfBatch = (tasks: number): string =>
  `getTaskContext is for one task, and this is a batch of ${tasks}; use getTaskContexts, which returns an array for both`;

export const wrongThread = (what: string, value: string): string =>
  `${what}: thread is ${value}; it must be true or false`;

export const batchInThread = (what: string): string =>
  `${what} has the options batch and thread; a thread runs one task at a time: leave one of them out`;

export const stepsInThread = (label: string): string =>
  `${label} has steps and thread: true; steps are stored by the server, so call them in a handler without a thread, and give the heavy part a task of its own`;

export const noStepsInThread = (type: string): string =>
  `task "${type}" runs in a thread, which has no steps, batches and workflows`;

export const noThreads = (label: string): string =>
  `${label} has thread: true, and the server has no threads: give server: { threads: { module } } the URL or the path of the file with its module`;

export const codecInThread = (label: string): string =>
  `${label} runs in a thread, which cannot get the codec of the module; give its definition, or @TaskHandler, the codec`;

export const noThreadHandler = (pattern: string): string =>
  `the module of the threads has no handler with thread: true for "${pattern}": list its class under the providers of that module`;

export const noModuleInFile = (file: string, name?: string): string =>
  name === undefined
    ? `${file} exports no module, or several: export one class with @Module(), or say which with the option export of threads`
    : `${file} exports no module "${name}"`;
