/** What to say of an option that another library has, by its name there. */
export type ForeignNames = Readonly<Record<string, string>>;

const here = (name: string, note = ''): string => `here it is ${name}${note === '' ? '' : `, ${note}`}`;

const retries = here('maxRetry', 'which counts the retries: attempts: 3 is maxRetry: 2');
const backoff = here('retryDelay', 'a function, of defineTask, @TaskHandler or the server');
const rate = here('rateLimit: { max, per }', 'of @TaskHandler, defineTask, or of a queue of the server');
const schedule = "schedules are @PeriodicTask('0 9 * * *'), or AsynqScheduler.register";
const flows = 'a task that waits for others is a step of a workflow, or has after';
const lease = 'there is none here: a server extends the leases of its tasks by itself';
const byKey = "here it is by: 'key'; give key: 'order-17' beside unique";
const own = 'it is an option of defineTask or @TaskHandler, where the tasks are handled';
const byTask = 'it is an option of a task: give it to defineTask, or to the call that enqueues';
const noBackoffStrategy = 'for settings.backoffStrategy there is retryDelay, of the server; leases need no settings';
const ofServer = (name: string): string => `it is an option of the server: server: { ${name} }`;
const ofConnection = 'it belongs to the connection: connection: { host, port }';

/** Of BullMQ, Bull, agenda and pg-boss, and of tools that are like them. */
const JOBS: ForeignNames = {
  attempts: retries,
  retries: here('maxRetry'),
  maxAttempts: here('maxRetry', 'which counts the retries: maxAttempts: 3 is maxRetry: 2'),
  retryLimit: here('maxRetry'),
  backoff,
  delay: here('processIn', "as in processIn: '10m'; a number is milliseconds"),
  startAfter: here('processAt (a Date) or processIn (a duration)'),
  runAt: here('processAt', 'a Date'),
  when: here('processAt', 'a Date'),
  eta: here('processAt', 'a Date'),
  countdown: here('processIn', 'a duration'),
  jobId: "here it is taskId, and a second one throws; a key with once: '1d' returns the task that exists",
  deduplication: here('unique, debounce or throttle'),
  singletonKey: here('unique, or once with a key'),
  removeOnComplete: here('retention', 'how long a task is kept after success; by default it is deleted at once'),
  removeOnFail:
    'a failed task is archived; queues of the module says how many, as in { mail: { archive: { maxAge } } }',
  shouldSaveResult: here('retention', 'for which a task keeps its result'),
  expireInSeconds: here('timeout', "as in timeout: '30s'"),
  keepUntil: here('expiresIn'),
  ttl: here('expiresIn (until it begins) or timeout (of an attempt)'),
  priority:
    'a queue has a priority here, and not a task: server: { queues: { critical: 6, default: 1 } }, queue: "critical"',
  lifo: 'there is none here: tasks of a queue start in their order',
  repeat: schedule,
  repeatEvery: schedule,
  cron: schedule,
  every: schedule,
  parent: flows,
  children: flows,
  failParentOnFailure: flows,
  ignoreDependencyOnFailure: flows,
  removeDependencyOnFailure: flows,
  continueParentOnFailure: flows,
  lockLifetime: lease,
  stackTraceLimit: here('attemptHistory', 'of the server: how many failed attempts are kept, each with its stack'),
  keepLogs: 'there is none here: a task keeps the last 1,000 lines of task.log',
  sizeLimit: here('maxPayloadSize of the module'),
  telemetry: here('tracing of the module'),
};

const WORKERS: ForeignNames = {
  limiter: rate,
  lockDuration: lease,
  lockRenewTime: lease,
  stalledInterval: lease,
  maxStalledCount: here('maxCrashes', 'of the server'),
  lockLimit: here('concurrency'),
  defaultLockLimit: here('concurrency'),
  maxConcurrency: here('concurrency'),
  defaultConcurrency: here('concurrency'),
  teamSize: here('concurrency'),
  processEvery: here('taskCheckInterval', 'though an idle server is woken by Redis at once'),
  drainDelay: here('taskCheckInterval', 'though an idle server is woken by Redis at once'),
  autorun: here('autoStart of the module'),
  useWorkerThreads: here('thread: true', 'of @TaskHandler, with server: { threads: { module } }'),
};

const OF_TASK = ['queue', 'maxRetry', 'timeout', 'deadline', 'unique', 'processIn', 'processAt', 'retention', 'group'];
const OF_SERVER = ['concurrency', 'strictPriority', 'shutdownTimeout', 'retryDelay', 'isFailure', 'onError'];

const named = (names: readonly string[], text: (name: string) => string): ForeignNames =>
  Object.fromEntries(names.map((name) => [name, text(name)]));

const DEFINITION: ForeignNames = { ...JOBS, ...WORKERS, payload: 'a payload is given to the call that enqueues' };

/** In both places where a queue has options. */
const OF_QUEUE: ForeignNames = {
  ...JOBS,
  ...WORKERS,
  ...named(OF_TASK, () => byTask),
  defaultJobOptions: here('defaults of the module', 'or the options of defineTask'),
};

/** By the place where an option was given. Ours are in it, too, where they belong elsewhere. */
export const FOREIGN = {
  definition: DEFINITION,
  task: {
    ...JOBS,
    ...named(['retryDelay', 'isFailure', 'codec', 'concurrency', 'rateLimit', 'globalConcurrency'], () => own),
    id: here('taskId'),
    payload: 'a payload is given before the options: enqueue(task, payload, options)',
  },
  handler: {
    ...JOBS,
    ...WORKERS,
    ...named(OF_TASK, () => byTask),
    name: 'the type is the first argument of @TaskHandler',
  },
  periodic: {
    ...JOBS,
    pattern: 'the spec is the first argument',
    cron: 'the spec is the first argument',
    every: "give '@every 90s' as the spec, the first argument",
    timeZone: here('tz'),
    timezone: here('tz'),
    utcOffset: here('tz', 'an IANA name such as "Europe/Berlin"'),
    name: here('id'),
    jobId: here('id'),
    key: here('id', 'for the name of an entry'),
    data: here('payload'),
    utc: 'leave it out: times are UTC unless tz names a zone',
    waitForCompletion: here("overlap: 'skip'"),
    startDate: 'there is none here: register the task when it is to begin, with AsynqScheduler',
    endDate: 'there is none here: unregister the task with AsynqScheduler',
    limit: 'there is none here: unregister the task with AsynqScheduler',
    disabled:
      'there is none here: register the task where it is not, with AsynqScheduler; scheduler: false of the module is for all',
    immediately: 'the first time is the next one of the spec; enqueue a task to have one at once',
  },
  server: {
    ...WORKERS,
    autoStart: 'it is an option of the module, beside server',
    connection: 'it is an option of the module, beside server',
    redis: 'it is connection, an option of the module, beside server',
    prefix: 'it is keyPrefix, an option of the module, beside server',
    keyPrefix: 'it is an option of the module, beside server',
    defaults: 'it is an option of the module, beside server',
    codec: 'it is an option of the module, beside server',
    settings: noBackoffStrategy,
  },
  module: {
    ...named(OF_SERVER, ofServer),
    ...WORKERS,
    ...named(['limiter'], () => rate),
    redis: here('connection'),
    db: here('connection', "a URL such as 'redis://localhost:6379/0', or { host, port, db }"),
    mongo: 'tasks are stored in Redis: give connection',
    host: ofConnection,
    port: ofConnection,
    url: here('connection', "as in connection: 'redis://localhost:6379'"),
    prefix: here('keyPrefix'),
    defaultJobOptions: here('defaults'),
    sharedConnection: 'each module has its own connections; several applications may use one Redis',
    processors: 'handlers are methods with @TaskHandler of any provider',
    settings: noBackoffStrategy,
    global: here('isGlobal'),
    telemetry: here('tracing'),
    extraOptions: 'for manualRegistration there is autoStart: false, and start() of AsynqServer',
    skipVersionCheck: 'there is none here: leave it out',
  },
  /** One task of `enqueueMany`. */
  item: { name: here('type, a name, or task, a definition'), data: here('payload'), opts: here('options') },
  /** Of `server: { queues }`. */
  queue: {
    ...OF_QUEUE,
    limiter: here('rateLimit: { max, per }'),
    weight: here('priority'),
  },
  /** Of `queues` of the module. */
  queueSetting: {
    ...OF_QUEUE,
    limiter: here('rateLimit: { max, per }', 'in server: { queues }, beside it'),
    name: 'the name of a queue is its key: queues: { mail: { … } }',
  },
  rate: {
    duration: here('per'),
    interval: here('per'),
    timeout: here('per'),
    limit: here('max'),
    groupKey: here('limitBy', 'of @TaskHandler or defineTask'),
  },
  unique: {
    id: byKey,
    key: byKey,
    ttl: here('for'),
    replace: here("onDuplicate: 'replace'"),
    extend: 'there is none here: debounce waits for a pause',
    keepLastIfActive: here('latest: true', 'instead of unique'),
  },
  debounce: {
    id: here('key', 'an option of the task beside debounce'),
    key: 'it is an option of the task beside debounce',
    ttl: here('wait'),
    delay: here('wait'),
  },
  /** The options of a step of a workflow, beside those of its task. */
  step: {
    ...JOBS,
    jobId: 'there is none here: the run gives a task its id; give start(workflow, { id }) that of the parent',
    opts: here('options'),
    data: 'the payload is the third argument of add()',
    queueName: here('options: { queue }'),
    children: here("after: ['a', 'b']", 'of the step that waits for others'),
    parent: here("after: ['a', 'b']", 'of the step that waits for others'),
    failParentOnFailure: 'leave it out: the step after one that failed is cancelled, and the run has failed',
    ignoreDependencyOnFailure: here('optional: true'),
    removeDependencyOnFailure: here('optional: true'),
    continueParentOnFailure: here("onFailure: 'run'", 'of the step after it'),
    dependsOn: here('after'),
    attempts: here('options: { maxRetry }', 'which counts the retries: attempts: 3 is maxRetry: 2'),
    delay: here('options: { processIn }'),
  },
  start: {
    jobId: here('id'),
    queueName: here('queue'),
    removeOnComplete: here('retention', 'how long a run that has ended is kept'),
    removeOnFail: here('retention', 'how long a run that has ended is kept'),
  },
  async: {
    connection: 'it is returned by useFactory: useFactory: () => ({ connection: … })',
    server: 'it is returned by useFactory: useFactory: () => ({ connection: …, server: … })',
    global: here('isGlobal'),
  },
} as const satisfies Readonly<Record<string, ForeignNames>>;
