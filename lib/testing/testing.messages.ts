/** The texts of TestingError: each says what to change in the test. */

export const noModule =
  'AsynqTester.from: this module has no AsynqModule; import AsynqModule.forRoot(...), or the module that imports it';

export const noInMemoryBroker = (connection: string): string => {
  const token = connection === 'default' ? 'ASYNQ_BROKER' : `getAsynqBrokerToken('${connection}')`;
  return (
    `AsynqTester.from: the connection "${connection}" is not on an InMemoryBroker; before compile() add ` +
    `.overrideProvider(${token}).useClass(InMemoryBroker)`
  );
};

export const noHandlers = (connection: string): string =>
  `nothing can run: this module has no @TaskHandler for the connection "${connection}"; ` +
  'add the module or the provider that handles its tasks';

export const runsOn = (limit: number, last: string): string =>
  `more than ${limit} attempts and still tasks to run (the last: "${last}"): does a task enqueue itself without a delay? ` +
  'Give { limit } when that many are right';

export const notRunnable = (type: string, state: string): string =>
  `work: the task "${type}" became "${state}" and not pending, so it cannot be run alone; leave out its group`;
