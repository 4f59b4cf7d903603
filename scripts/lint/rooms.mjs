// Which room of lib may import which: the walls of ARCHITECTURE.md as data. Deny by default: a new room needs a line here.

/** The files directly under lib that belong to no room and import nothing but each other. */
const LEAVES = [
  'errors',
  'clock',
  'async',
  'loop',
  'logger',
  'duration',
  'duration-hint',
  'validation',
  'foreign-names',
  'printable',
  'error-code',
];

const core = ['leaf', 'wire', 'task', 'task/actions'];
const entry = [
  ...core,
  'events',
  'broker',
  'links',
  'enqueue',
  'workflows',
  'batches',
  'results',
  'client',
  'threads',
  'server',
  'scheduler',
  'inspector',
  'limits',
  'logging',
  'tracing',
  'tracing/opentelemetry',
  'event-streams',
  'redaction',
  'transactions',
];

const web = (...names) => names.map((name) => `dashboard/web/${name}`);
const webParts = web('store', 'text', 'ui', 'api', 'state', 'live');

/**
 * The page of the console, from its parts up to the app. It runs in a browser: it knows the console's REST API, and of the rest
 * of lib only how sizes are worded and which action a state allows.
 */
const WEB = {
  'dashboard/web/store': [],
  'dashboard/web/json': [],
  'dashboard/web/text': ['words'],
  'dashboard/web/ui': web('store', 'json', 'text'),
  'dashboard/web/api': ['task/actions'],
  'dashboard/web/state': web('store', 'api'),
  'dashboard/web/live': web('store', 'text', 'ui', 'api', 'state'),
  'dashboard/web/list': [...webParts, 'task/actions'],
  'dashboard/web/task': [...webParts, 'task/actions'],
  'dashboard/web/pages': [...webParts, ...web('json', 'list', 'task')],
  'dashboard/web/history': [...webParts, ...web('pages')],
  'dashboard/web/runs': [...webParts, ...web('pages')],
  'dashboard/web/app': [...webParts, ...web('pages', 'history', 'runs')],
  'dashboard/web': web('app'),
};

const nest = (...names) => names.map((name) => `nest/${name}`);

/** The layer for Nest, from what decorators write to the module and, on top of it, the routes for deployments. */
const NEST = {
  'nest/names': [],
  'nest/decorators': ['leaf', 'task', 'events', 'scheduler', ...nest('names')],
  'nest/discovery': ['leaf', ...nest('names', 'decorators')],
  'nest/execution': [
    ...core,
    'events',
    'broker',
    'enqueue',
    'client',
    'server',
    ...nest('names', 'decorators', 'discovery'),
  ],
  'nest/events': ['leaf', 'events', 'event-streams', 'broker', ...nest('decorators')],
  'nest/connection': [
    ...core,
    'events',
    'event-streams',
    'tracing',
    'redaction',
    'broker',
    'broker/redis/connection',
    'links',
    'transactions',
    'client',
    'server',
    'scheduler',
    ...nest('names', 'events', 'execution'),
  ],
  'nest/calls': [
    ...core,
    'client',
    'results',
    'scheduler',
    ...nest('names', 'decorators', 'discovery', 'execution', 'connection'),
  ],
  // What runs in a thread: an application context of the module with the handlers.
  'nest/threads': [...core, 'events', 'threads', 'server', ...nest('names', 'discovery', 'execution')],
  'nest/lifecycle': [
    ...core,
    'events',
    'threads',
    'client',
    'server',
    'scheduler',
    ...nest('names', 'decorators', 'discovery', 'execution', 'connection', 'calls', 'threads'),
  ],
  'nest/health': ['leaf', 'broker', 'transactions', 'server', 'inspector', ...nest('connection', 'lifecycle')],
  nest: [
    ...entry,
    'broker/redis',
    'broker/redis/connection',
    'broker/memory',
    ...nest('names', 'discovery', 'execution', 'events', 'connection', 'calls', 'lifecycle', 'health'),
  ],
  'nest/operations': ['leaf', ...nest('names', 'connection', 'lifecycle', 'health'), 'nest'],
};

/** Room → the rooms it may import, besides itself. */
export const ROOMS = {
  // The classes of errors are files by theme, which the others import through errors.ts.
  errors: [],
  leaf: ['errors'],
  wire: ['leaf'],
  cron: ['leaf', 'wire'],
  words: ['wire'],
  task: ['leaf', 'wire', 'task/actions'],
  // Which action a task allows in which state: one file, which the console's page reads too.
  'task/actions': ['wire'],
  redaction: ['leaf'],
  events: core,
  // Runs tasks in threads of this process.
  threads: [...core, 'events'],
  tracing: [...core, 'events'],
  'tracing/opentelemetry': [...core, 'events', 'tracing', 'redaction'],
  broker: core,
  // A socket with a purpose, then how a script is called, then the roles: each knows those before it only.
  'broker/redis/connection': ['leaf', 'wire'],
  'broker/redis/scripts': [...core, 'broker', 'broker/redis/connection'],
  'broker/redis': [...core, 'broker', 'broker/redis/connection', 'broker/redis/scripts'],
  'broker/memory': [...core, 'broker'],
  // Carries messages between the places where links live.
  links: [...core, 'events', 'broker'],
  enqueue: [...core, 'events', 'tracing', 'broker', 'links'],
  workflows: [...core, 'events', 'tracing', 'broker', 'links', 'enqueue'],
  batches: [...core, 'events', 'tracing', 'broker', 'links', 'enqueue'],
  // Waits for the ends of tasks.
  results: [...core, 'events', 'broker'],
  // Which transaction is around a call; what is enqueued in it.
  transactions: [...core, 'enqueue'],
  client: [
    ...core,
    'events',
    'tracing',
    'broker',
    'links',
    'enqueue',
    'workflows',
    'batches',
    'results',
    'transactions',
  ],
  // A server's rooms stand on each other: an attempt knows no queue, fetching no loop, and only the root knows them all.
  'server/attempt': [...core, 'events', 'tracing', 'broker'],
  'server/crew': [...core, 'events', 'broker'],
  'server/fetching': [...core, 'events', 'broker', 'server/attempt', 'server/crew'],
  'server/loops': [...core, 'events', 'broker', 'links', 'server/attempt', 'server/fetching'],
  'server/groups': [...core, 'events', 'tracing', 'broker', 'links', 'enqueue', 'server/fetching', 'server/loops'],
  server: [
    ...core,
    'events',
    'threads',
    'tracing',
    'broker',
    'links',
    'server/attempt',
    'server/crew',
    'server/fetching',
    'server/loops',
    'server/groups',
  ],
  scheduler: [...core, 'cron', 'events', 'tracing', 'broker', 'links', 'enqueue', 'client'],
  inspector: [...core, 'words', 'broker', 'links', 'workflows', 'batches'],
  limits: [...core, 'broker'],
  'event-streams': [...core, 'events', 'broker'],
  logging: [...core, 'events', 'redaction'],
  ...NEST,
  testing: [
    ...entry,
    'broker/memory',
    'enqueue',
    'transactions',
    'outbox',
    ...nest('names', 'connection', 'calls', 'lifecycle'),
    'nest',
  ],
  // The SQL of an outbox, then its stores, the relay and the module.
  'outbox/sql': ['leaf', 'outbox/store'],
  'outbox/store': ['transactions'],
  'outbox/stores': ['leaf', 'transactions', 'outbox/sql', 'outbox/store'],
  outbox: [
    ...core,
    'events',
    'broker',
    'links',
    'enqueue',
    'transactions',
    'outbox/sql',
    'outbox/store',
    'outbox/stores',
    ...nest('names', 'connection', 'lifecycle'),
    'nest',
  ],
  dashboard: [
    ...core,
    'events',
    'redaction',
    'broker',
    'client',
    'inspector',
    'event-streams',
    'transactions',
    ...nest('names', 'connection'),
    'nest',
  ],
  ...WEB,
  metrics: ['leaf', 'events', 'inspector', 'server', ...nest('names', 'connection', 'lifecycle'), 'nest'],
  // What is printed, then the connection, then what every command shares, then the commands; the root puts them together.
  'cli/output': [...core, 'words', 'inspector'],
  'cli/connection': [
    'leaf',
    'broker/redis',
    'broker/redis/connection',
    'links',
    'inspector',
    'client',
    'outbox/sql',
    'outbox/stores',
  ],
  'cli/tree': [...core, 'broker', 'inspector', 'client', 'outbox/sql', 'cli/output', 'cli/connection'],
  'cli/dash': [...core, 'broker', 'inspector', 'words', 'cli/output'],
  'cli/commands': [...core, 'broker', 'inspector', 'words', 'outbox/sql', 'cli/output', 'cli/tree', 'cli/dash'],
  cli: ['leaf', 'cli/output', 'cli/connection', 'cli/tree', 'cli/commands'],
  index: [...entry, 'broker/redis', 'broker/redis/connection', 'broker/memory', ...Object.keys(NEST)],
};

/** Room → its one file that other rooms may import; they do not see the rooms inside it. */
export const DOORS = { server: 'server/index.js' };

/** Packages that only some rooms may import; what is not named here is open to every room. */
export const PACKAGES = [
  {
    match: /^@nestjs\/testing$/,
    rooms: [],
    why: 'it is not a dependency of this package; take INestApplicationContext',
  },
  {
    match: /^(@nestjs\/|rxjs(\/|$)|reflect-metadata)/,
    rooms: [...Object.keys(NEST), 'testing', 'metrics', 'dashboard', 'outbox'],
    why: 'the core knows no Nest',
  },
  {
    match: /^ioredis(\/|$)/,
    rooms: ['broker/redis', 'broker/redis/connection', 'broker/redis/scripts', 'nest', 'cli/connection'],
    why: 'only the Redis broker talks to Redis',
  },
  {
    match: /^(commander|yaml|cli-progress|string-width)(\/|$)/,
    rooms: ['cli', 'cli/output', 'cli/connection', 'cli/tree', 'cli/commands'],
    why: 'only the command line needs it, and an application should not load it',
  },
  {
    match: /^preact(\/|$)/,
    rooms: ['dashboard/web', ...web('store', 'ui', 'state', 'live', 'list', 'task', 'pages', 'history', 'runs', 'app')],
    why: 'only the components of the console use it',
    // Vite compiles it into the page: users do not install it.
    bundled: true,
  },
  {
    match: /^@dagrejs\//,
    rooms: web('runs'),
    why: 'only the picture of a run needs it',
    bundled: true,
  },
  {
    match: /^(@nestjs-cls\/|typeorm-transactional$)/,
    rooms: ['transactions'],
    why: 'it is an optional peer; an app without it must boot',
  },
  {
    match: /^drizzle-orm$/,
    rooms: ['outbox/stores'],
    why: 'it is an optional peer; an app without it must boot',
  },
  {
    match: /^@opentelemetry\//,
    rooms: ['tracing/opentelemetry'],
    why: 'it is an optional peer; an app without it must boot',
  },
  {
    match: /^prom-client(\/|$)/,
    rooms: ['metrics'],
    why: 'it is an optional peer; an application without it must boot',
  },
  {
    match: /^class-(validator|transformer)(\/|$)/,
    rooms: [],
    why: 'it is an optional peer; an app without it must boot',
  },
];

/**
 * The room of a path relative to lib (`server/loop.ts`), or undefined when no room has it.
 * The longest room name wins: `broker/redis/x.ts` is in `broker/redis`, `broker/broker.ts` in `broker`. A room can be one file.
 */
export function roomOf(path) {
  const parts = path.replace(/\.[cm]?[jt]sx?$/, '').split('/');
  if (parts.length === 1) return LEAVES.includes(parts[0]) ? 'leaf' : ROOMS[parts[0]] ? parts[0] : undefined;
  for (let depth = parts.length; depth > 0; depth--) {
    const room = parts.slice(0, depth).join('/');
    if (ROOMS[room]) return room;
  }
  return undefined;
}
