/** Texts of the console's errors. Each names the thing, the value and the remedy. */

export const openDashboard = (path: string, environment: string | undefined): string =>
  `the Asynq dashboard at "${path}" would be open to everyone: it has no guards, and nothing says who may do what. ` +
  'Give AsynqDashboardModule `guards: [YourAuthGuard]`, or `access: (request) => ...` that returns "view", "act", "destroy" ' +
  'or undefined; if a global guard or the network protects it, set `access: "destroy"`. ' +
  `Without either it starts only when NODE_ENV is "development" (it is ${JSON.stringify(environment ?? 'not set')})`;

export const openForDevelopment = (path: string): string =>
  `the Asynq dashboard at "${path}" lets everyone do everything, because NODE_ENV is "development"; ` +
  'elsewhere the application does not start without the options `guards` or `access`';

export const noOptionsSource = 'AsynqDashboardModule.forRootAsync needs one of useFactory, useClass or useExisting';

export const misplacedStatic = (key: string): string =>
  `the dashboard option "${key}" cannot come from a factory: Nest needs it before the factory runs; ` +
  'put it beside useFactory (or useClass, useExisting) in AsynqDashboardModule.forRootAsync';

export const readOnlyMode = (method: string): string =>
  `API Server is running in read-only mode: ${method} request is not allowed`;

export const forbidden = (needed: string, has: string | undefined): string =>
  has === undefined
    ? 'you have no access to this dashboard; ask whoever set its option `access`'
    : `this needs the role "${needed}", and you have "${has}"; ask whoever set the dashboard's option \`access\``;

export const noArchiveRoom = (queue: string, has: string, tasks: number, most: number): string =>
  `queue ${JSON.stringify(queue)} has ${tasks.toLocaleString('en-US')} tasks that are archived or may be archived; from ` +
  `${most.toLocaleString('en-US')} on, one more could make the archive delete tasks, which needs the role "destroy"; you have "${has}"`;

export const forbiddenGenerally = (needed: string): string =>
  `this belongs to no queue and needs the role "${needed}" as the \`default\` of your permissions; ` +
  "ask whoever set the dashboard's option `access`";

export const runElsewhere = (needed: string): string =>
  `a step of this run is in a queue where you do not have the role "${needed}", which this needs in all of them; ` +
  'ask somebody who has it';

export const cancelsElsewhere =
  'a cancellation reaches every task with this id, and one of them runs in a queue that you may not change; ' +
  'ask somebody who may';

export const crossOrigin = (from: string): string =>
  `this request comes from another site (${from}) and was refused; if it is yours, add its origin to the dashboard's option trustedOrigins`;

export const notMeant = (trait: string): string =>
  `this change has ${trait}, so a page of another site may have made a browser send it; confirm it with the header ` +
  "X-Asynq-Console (curl: -H 'X-Asynq-Console: 1') or with Content-Type: application/json";

export const notFromThisMachine = (from: string): string =>
  `this dashboard is open to everyone for development, so it accepts only connections from this machine, not ${from}; ` +
  'set the option `guards` or `access`';

export const foreignHost = (host: string): string =>
  `this dashboard is open to everyone for development, so it accepts only localhost or an IP address as its host, not ${JSON.stringify(host)}, which ` +
  'another site may own; set the option `guards` or `access`, or add the origin to trustedOrigins';

export const notJson = (type: string, why?: string): string =>
  `the body is ${type}${why ? ` (${why})` : ''}; send JSON with the header Content-Type: application/json ` +
  "(curl: -H 'Content-Type: application/json')";

export const badBody = (why: string): string => `the body cannot be read as JSON: ${why}`;

export const tooLargeForApplication =
  'the body is larger than this application reads; send several requests, or raise its limit (Express: ' +
  "app.useBodyParser('json', { limit: '1mb' }); Fastify: the adapter's option bodyLimit)";

export const tooLarge = (most: number): string =>
  `the body is larger than ${most.toLocaleString('en-US')} bytes; send several requests`;

export const noBodyParser =
  "the application does not parse JSON bodies (bodyParser: false?), so the dashboard cannot receive any; enable them with app.useBodyParser('json')";

export const twoAt = (path: string): string =>
  `there are two dashboards at "${path}", and only one of them would be reachable; give one of them another \`path\``;

export const pageMissing =
  'the page of the dashboard has not been built; in the repository of nestjs-asynq: npm run build';
