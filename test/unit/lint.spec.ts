import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const oxlint = join(repository, 'node_modules', 'oxlint', 'bin', 'oxlint');

/** The rooms of the console's page, bottom first, and which of those below each one imports. */
const page: Record<string, string[]> = {
  json: [],
  text: [],
  ui: ['json', 'text'],
  api: [],
  state: ['api'],
  live: ['text', 'ui', 'api', 'state'],
  task: ['text', 'ui', 'api', 'state', 'live'],
  list: ['text', 'ui', 'api', 'state', 'live'],
  pages: ['json', 'text', 'ui', 'api', 'state', 'live', 'task', 'list'],
  history: ['text', 'ui', 'api', 'state', 'live', 'pages'],
  app: ['text', 'ui', 'api', 'state', 'live', 'pages', 'history'],
};

const pageArrows = Object.fromEntries(
  Object.entries(page).map(([room, allowed]) => [
    `lib/dashboard/web/${room}/part.tsx`,
    {
      allowed: allowed.map((other) => `../${other}/other.js`),
      forbidden: Object.keys(page)
        .filter((other) => other !== room && !allowed.includes(other))
        .map((other) => `../${other}/other.js`),
    },
  ]),
);

/** What a file of each room may import, and what the linter must refuse: the arrows of ARCHITECTURE.md. */
const arrows: Record<string, { allowed: string[]; forbidden: string[] }> = {
  'lib/clock.ts': {
    allowed: ['./errors.js'],
    forbidden: [
      './wire/keys.js',
      './task/context.js',
      './broker/broker.js',
      '@nestjs/common',
      '../test/support/redis.js',
    ],
  },
  'lib/wire/codec.ts': {
    allowed: ['../errors.js', './keys.js'],
    forbidden: ['../task/context.js', '../broker/broker.js', 'ioredis'],
  },
  'lib/task/options.ts': {
    allowed: ['../wire/message.js', '../duration.js'],
    forbidden: ['../events/events.js', '../broker/broker.js', '../client/client.js'],
  },
  'lib/task/actions.ts': {
    allowed: ['../wire/states.js'],
    forbidden: ['./transitions.js', '../errors.js', '../broker/broker.js'],
  },
  'lib/events/events.ts': {
    allowed: ['../task/context.js'],
    forbidden: ['../broker/broker.js', '../logging/log.js'],
  },
  'lib/broker/broker.ts': {
    allowed: ['../wire/message.js', '../clock.js'],
    forbidden: ['./redis/redis-broker.js', './memory/memory-broker.js', '../client/client.js', 'ioredis'],
  },
  'lib/broker/redis/producer.ts': {
    allowed: [
      '../broker.js',
      '../../wire/keys.js',
      '../../errors.js',
      './connection/connections.js',
      './scripts/scripts.js',
      'ioredis',
      'node:fs',
    ],
    forbidden: [
      '../memory/memory-broker.js',
      '../../client/client.js',
      '../../server/server.js',
      '../../nest/module.js',
      '@nestjs/common',
    ],
  },
  'lib/broker/redis/scripts/scripts.ts': {
    allowed: ['../connection/connections.js', '../../broker.js'],
    forbidden: ['../producer.js', '../../memory/memory-broker.js', '../../../client/client.js'],
  },
  'lib/broker/redis/connection/connections.ts': {
    allowed: ['../../../errors.js', 'ioredis'],
    forbidden: ['../scripts/scripts.js', '../producer.js', '../../broker.js', '../../../task/options.js'],
  },
  'lib/broker/memory/memory-broker.ts': {
    allowed: ['../broker.js', '../../clock.js'],
    forbidden: ['../redis/redis-broker.js', '../../server/server.js', '../../nest/module.js', 'ioredis'],
  },
  ...pageArrows,
  'lib/dashboard/web/store.ts': { allowed: ['preact/hooks'], forbidden: ['./ui/text.js', './state/config.js'] },
  'lib/dashboard/web/main.tsx': { allowed: ['./app/app.js', 'preact'], forbidden: ['./ui/text.js', './pages/page.js'] },
  'lib/dashboard/web/list/list.tsx': {
    allowed: ['../ui/text.js', '../store.js', '../../../task/actions.js', 'preact', 'preact/hooks'],
    forbidden: [
      '../../../task/transitions.js',
      '../../../wire/states.js',
      '../../rest/controller.js',
      '../../../errors.js',
      '../../../inspector/inspector.js',
      '@nestjs/common',
    ],
  },
  'lib/loop.ts': {
    allowed: ['./async.js', './clock.js'],
    forbidden: ['./broker/broker.js', './events/events.js', './server/server.js'],
  },
  'lib/enqueue/preparer.ts': {
    allowed: ['../broker/broker.js', '../task/options.js', '../events/events.js', '../tracing/tracing.js'],
    forbidden: [
      '../client/client.js',
      '../scheduler/scheduler.js',
      '../server/server.js',
      '../nest/module.js',
      'ioredis',
    ],
  },
  'lib/scheduler/scheduler.ts': {
    allowed: ['../broker/broker.js', '../cron/parse.js', '../enqueue/preparer.js', '../client/types.js', '../loop.js'],
    forbidden: ['../server/server.js', '../broker/memory/memory-broker.js', '../nest/module.js', 'ioredis'],
  },
  'lib/client/client.ts': {
    allowed: ['../broker/broker.js', '../task/options.js', '../tracing/tracing.js'],
    forbidden: [
      '../tracing/opentelemetry/load.js',
      '@opentelemetry/api',
      '../broker/redis/redis-broker.js',
      '../broker/memory/memory-broker.js',
      '../server/server.js',
      '../nest/module.js',
      '@nestjs/common',
      'ioredis',
    ],
  },
  'lib/server/server.ts': {
    allowed: ['../broker/broker.js', '../events/events.js', './attempt/verdict.js', './loops/janitor.js'],
    forbidden: [
      '../broker/redis/redis-broker.js',
      '../broker/memory/memory-broker.js',
      '../client/client.js',
      '../logging/log.js',
      '../nest/module.js',
      '@nestjs/core',
      'rxjs',
      'ioredis',
    ],
  },
  'lib/server/attempt/verdict.ts': {
    allowed: ['./active-task.js', '../../broker/broker.js', '../../tracing/tracing.js'],
    forbidden: [
      '../fetching/queue-registry.js',
      '../loops/janitor.js',
      '../groups/aggregator.js',
      '../../client/client.js',
    ],
  },
  'lib/server/fetching/processor.ts': {
    allowed: ['../attempt/active-task.js', './queue-registry.js'],
    forbidden: ['../loops/janitor.js', '../groups/aggregator.js', '../executor.js', '../../tracing/tracing.js'],
  },
  'lib/server/loops/janitor.ts': {
    allowed: ['../attempt/verdict.js', '../fetching/queue-registry.js', './forwarder.js'],
    forbidden: ['../groups/aggregator.js', '../executor.js', '../../client/client.js'],
  },
  'lib/server/groups/aggregator.ts': {
    allowed: ['../fetching/queue-registry.js', '../loops/queue-passes.js'],
    forbidden: ['../attempt/verdict.js', '../core.js', '../../client/client.js'],
  },
  'lib/tracing/tracing.ts': {
    allowed: ['../events/events.js', '../wire/message.js'],
    forbidden: ['./opentelemetry/load.js', '../broker/broker.js', '@opentelemetry/api'],
  },
  'lib/tracing/opentelemetry/load.ts': {
    allowed: ['../tracing.js', '../../errors.js', '@opentelemetry/api'],
    forbidden: ['../../client/client.js', '../../server/server.js', '@nestjs/common'],
  },
  'lib/event-streams/event-writer.ts': {
    allowed: ['../broker/broker.js', '../events/events.js'],
    forbidden: ['../server/server.js', '../nest/module.js', 'rxjs', '@opentelemetry/api'],
  },
  'lib/logging/log.ts': {
    allowed: ['../events/events.js', '../logger.js'],
    forbidden: ['../server/server.js', '../broker/broker.js', '@nestjs/common'],
  },
  'lib/nest/decorators/task-handler.decorator.ts': {
    allowed: ['../names/nest.constants.js', '../../task/definition.js', '@nestjs/common'],
    forbidden: ['../discovery/handler.explorer.js', '../../server/index.js', '../../broker/broker.js', 'ioredis'],
  },
  'lib/nest/discovery/handler.explorer.ts': {
    allowed: ['../decorators/task-handler.decorator.js', '@nestjs/core'],
    forbidden: ['../execution/enhancers.js', '../connection/connection.registry.js', '../../server/index.js'],
  },
  'lib/nest/execution/enhancers.ts': {
    allowed: ['../discovery/handler.explorer.js', '../../server/index.js', '@nestjs/core'],
    forbidden: ['../connection/connection.registry.js', '../lifecycle/server.orchestrator.js', '../asynq.module.js'],
  },
  'lib/nest/connection/connection.registry.ts': {
    allowed: ['../events/asynq-task-events.js', '../../broker/broker.js'],
    forbidden: ['../lifecycle/server.orchestrator.js', '../../broker/memory/memory-broker.js', 'ioredis'],
  },
  'lib/nest/lifecycle/server.orchestrator.ts': {
    allowed: ['../connection/connection.registry.js', '../execution/enhancers.js', '../../server/index.js'],
    forbidden: ['../health/asynq-health.js', '../asynq.module.js', '../../broker/redis/redis-broker.js'],
  },
  'lib/nest/health/asynq-health.ts': {
    allowed: ['../lifecycle/server.orchestrator.js', '../../inspector/inspector.js'],
    forbidden: ['../operations/operations.service.js', '../asynq.module.js', '../../client/client.js'],
  },
  'lib/nest/operations/operations.service.ts': {
    allowed: ['../health/asynq-health.js', '../asynq-core.module.js', '@nestjs/common'],
    forbidden: ['../../server/index.js', '../../broker/broker.js', '../../dashboard/dashboard.js'],
  },
  'lib/nest/module.ts': {
    allowed: [
      '../broker/redis/redis-broker.js',
      '../broker/memory/memory-broker.js',
      '../server/index.js',
      '@nestjs/core',
    ],
    forbidden: [
      '../server/server.js',
      '../server/attempt/verdict.js',
      '../testing/tester.js',
      '@nestjs/testing',
      'class-validator',
      'class-transformer',
      'vitest',
      'left-pad',
      'fs',
      '../attic/stray.js',
    ],
  },
  'lib/testing/tester.ts': {
    allowed: ['../broker/memory/memory-broker.js', '../nest/module.js', '@nestjs/common'],
    forbidden: ['../broker/redis/redis-broker.js', '@nestjs/testing', 'ioredis'],
  },
  'lib/cli/output/table.ts': {
    allowed: ['../../printable.js', '../../inspector/views.js', 'string-width'],
    forbidden: ['../connection/session.js', '../tree/tree.js', '../../broker/redis/redis-broker.js', 'ioredis'],
  },
  'lib/cli/connection/session.ts': {
    allowed: ['../../broker/redis/redis-broker.js', '../../client/client.js', '../../inspector/inspector.js', 'yaml'],
    forbidden: ['../../broker/memory/memory-broker.js', '../output/table.js', '../tree/tree.js', '@nestjs/common'],
  },
  'lib/cli/tree/tree.ts': {
    allowed: ['../output/terminal.js', '../connection/settings.js', 'commander'],
    forbidden: ['../commands/queue.js', '../dash/dashboard.js', '../program.js', 'ioredis'],
  },
  'lib/cli/dash/dashboard.ts': {
    allowed: ['../output/terminal.js', '../../inspector/inspector.js'],
    forbidden: ['../connection/session.js', '../tree/tree.js', '../commands/queue.js', 'commander', 'ioredis'],
  },
  'lib/cli/commands/queue.ts': {
    allowed: ['../tree/tree.js', '../dash/dashboard.js', '../../inspector/inspector.js', 'commander'],
    forbidden: [
      '../connection/session.js',
      '../program.js',
      '../../client/client.js',
      '../../broker/redis/consumer.js',
    ],
  },
  'lib/cli/program.ts': {
    allowed: ['./commands/queue.js', './tree/tree.js', 'commander'],
    forbidden: ['../server/server.js', '../nest/module.js', '../inspector/inspector.js', '@nestjs/common', 'rxjs'],
  },
  'lib/index.ts': { allowed: ['./nest/module.js', './errors.js'], forbidden: ['./testing/tester.js', './cli/run.js'] },
  'sample/01/main.ts': {
    allowed: ['nestjs-asynq', './tasks.js', '@nestjs/core'],
    forbidden: ['../../lib/index.js', '../../lib/nest/module.js'],
  },
};

const test = (statement: string) =>
  `import { describe, expect, it } from 'vitest';\n${statement}\nexport { describe, expect, it };`;

/**
 * `path → [text, rule]`: every other rule, each broken once. Some words are put together here, so that a search for such
 * leftovers does not end in this file.
 */
const violations: Record<string, [text: string, rule: string]> = {
  'lib/attic/stray.ts': ['export const stray = 1;', 'house(rooms)'],
  'lib/server/type-only.ts': ["export type { X } from '../client/client.js';", 'house(rooms)'],
  'lib/server/import-type.ts': ["export type Y = import('../client/client.js').X;", 'house(rooms)'],
  'lib/server/dynamic.ts': ["export const load = () => import('../client/client.js');", 'house(rooms)'],
  'lib/server/re-export.ts': ["export { x } from '../client/client.js';", 'house(rooms)'],
  'lib/server/cycle-a.ts': ["import { b } from './cycle-b.js';\nexport const a = () => b;", 'import(no-cycle)'],
  'lib/server/cycle-b.ts': ["import { a } from './cycle-a.js';\nexport const b = () => a;", 'import(no-cycle)'],
  'lib/server/types-a.ts': ["import type { B } from './types-b.js';\nexport type A = B[];", 'import(no-cycle)'],
  'lib/server/types-b.ts': ["import type { A } from './types-a.js';\nexport type B = A[];", 'import(no-cycle)'],
  // Only house/no-cycle finds the .tsx file that "./x.js" names.
  'lib/dashboard/web/task/cycle-a.tsx': [
    "import type { B } from './cycle-b.js';\nexport type A = B[];",
    'house(no-cycle)',
  ],
  'lib/dashboard/web/task/cycle-b.tsx': [
    "import { c } from './cycle-c.js';\nexport type B = typeof c;",
    'house(no-cycle)',
  ],
  'lib/dashboard/web/task/cycle-c.ts': [
    "import type { A } from './cycle-a.js';\nexport const c = (a: A) => a;",
    'house(no-cycle)',
  ],
  'lib/server/key.ts': ["export const key = 'asynq:queues';", 'house(keys-in-wire)'],
  'lib/server/template.ts': ['export const key = (q: string) => `asynq:{${q}}:pending`;', 'house(keys-in-wire)'],
  'lib/server/now.ts': ['export const time = () => Date.now();', 'eslint(no-restricted-properties)'],
  'lib/server/timer.ts': ['export const timer = () => setTimeout(() => {}, 1);', 'eslint(no-restricted-globals)'],
  'lib/server/default.ts': ['export default 1;', 'import(no-default-export)'],
  'lib/server/any.ts': ['export const x: any = 1;', 'typescript(no-explicit-any)'],
  'lib/server/console.ts': ["console.log('hello');", 'eslint(no-console)'],
  'lib/server/ignore.ts': [`// @ts-${'ignore'}\nexport const x: number = 1;`, 'typescript(ban-ts-comment)'],
  'lib/server/unused.ts': ["import { x } from './loop.js';\nexport const y = 1;", 'eslint(no-unused-vars)'],
  'test/unit/only.spec.ts': [test(`it.${'only'}('x', () => {});`), 'vitest(no-focused-tests)'],
  'test/unit/only-suite.spec.ts': [test(`describe.${'only'}('x', () => {});`), 'vitest(no-focused-tests)'],
  'test/unit/skip.spec.ts': [test(`it.${'skip'}('x', () => {});`), 'vitest(no-disabled-tests)'],
  'test/unit/skip-suite.spec.ts': [test(`describe.${'skip'}('x', () => {});`), 'vitest(no-disabled-tests)'],
  'test/unit/todo.spec.ts': [test(`it.${'todo'}('x');`), 'vitest(warn-todo)'],
  'test/unit/floating.spec.ts': [test("it('x', () => { expect(1); });"), 'vitest(valid-expect)'],
  'test/unit/asserts-nothing.spec.ts': [test("it('x', () => {});"), 'vitest(expect-expect)'],
};

interface Diagnostic {
  readonly code: string;
  readonly filename: string;
  readonly labels: { readonly span: { readonly line: number } }[];
}

describe('the linter', () => {
  const root = mkdtempSync(join(tmpdir(), 'asynq-lint-'));
  let status: number | null;
  let diagnostics: Diagnostic[];
  const of = (path: string) => diagnostics.filter(({ filename }) => filename === path);

  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  };

  beforeAll(() => {
    for (const path of ['.oxlintrc.json', 'package.json', 'scripts/lint'])
      cpSync(join(repository, path), join(root, path), { recursive: true });
    for (const [path, { allowed, forbidden }] of Object.entries(arrows))
      write(path, [...allowed, ...forbidden].map((source) => `export * from '${source}';`).join('\n'));
    for (const [path, [text]] of Object.entries(violations)) write(path, text);
    const run = spawnSync(process.execPath, [oxlint, '--format=json'], { cwd: root, encoding: 'utf8' });
    status = run.status;
    diagnostics = JSON.parse(run.stdout).diagnostics;
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it('fails', () => expect(status).toBe(1));

  it.each(Object.entries(arrows))('holds the walls around %s', (path, { allowed, forbidden }) => {
    const walls = of(path).filter(({ code }) => code === 'house(rooms)' || code === 'house(package-name)');
    const refused = walls.map(({ labels }) => [...allowed, ...forbidden][labels[0]!.span.line - 1]);
    expect(refused.toSorted()).toEqual(forbidden.toSorted());
  });

  it.each(Object.entries(violations))('refuses %s', (path, [, rule]) => {
    expect(of(path).map(({ code }) => code)).toContain(rule);
  });
});

describe('the linter on a project that obeys', () => {
  it('passes', () => {
    const root = mkdtempSync(join(tmpdir(), 'asynq-lint-'));
    for (const path of [
      '.oxlintrc.json',
      'package.json',
      'scripts/lint',
      'lib/errors.ts',
      'lib/errors',
      'lib/clock.ts',
    ])
      cpSync(join(repository, path), join(root, path), { recursive: true });
    const run = spawnSync(process.execPath, [oxlint], { cwd: root, encoding: 'utf8' });
    rmSync(root, { recursive: true });
    expect(run.stdout).toMatch(/Found 0 warnings and 0 errors/);
    expect(run.status).toBe(0);
  });
});
