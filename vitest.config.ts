import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const SETUPS: Readonly<Record<string, string[]>> = {
  e2e: ['sample/build.mjs'],
  browser: ['test/browser/build-page.ts'],
  package: ['test/package/pack.ts'],
};

/** A set of specs that `npm run test:<name>` runs alone. Groups run one after the other: what fails soon comes first. */
const project = (
  name: string,
  groupOrder: number,
  include: string[],
  { exclude = [] as string[], isolate = true } = {},
) => ({
  extends: true as const,
  test: {
    name,
    include,
    isolate,
    exclude: ['**/node_modules/**', 'test/package/consumer/**', ...exclude],
    // What these specs start is compiled or packed once, before the first of them.
    globalSetup: SETUPS[name] ?? [],
    sequence: { groupOrder },
  },
});

/**
 * Unit tests that replace modules, or what a process has one of, or end while modules are still being loaded: each in a process of its
 * own. The others share their modules, as loading them takes longer than most of what is done with them.
 */
const ALONE = [
  'test/cli/**/*.spec.ts',
  'test/dashboard/page.spec.ts',
  'test/nest/{log,module,tracing,tracing-absent,tracing-batch-handlers}.spec.ts',
  'test/unit/client-memory.spec.ts',
];

const suites = ['contract', 'redis', 'outbox', 'interop', 'e2e', 'browser', 'package'];
/** Suites whose specs share their modules, too, but for those that look at what their process has open. */
const SHARED = new Set(['browser', 'e2e', 'contract', 'redis', 'outbox', 'interop']);
const REDIS_ALONE = ['test/redis/{connection-kinds,connections,subscription,wake-source}.spec.ts'];
/** Suites that come last; the others run after the unit tests, all at once. */
const LATE: Readonly<Record<string, number>> = { browser: 2, package: 3 };

export default defineConfig({
  resolve: {
    alias: [
      { find: /^nestjs-asynq\/dashboard$/, replacement: here('./lib/dashboard/index.ts') },
      { find: /^nestjs-asynq\/metrics$/, replacement: here('./lib/metrics/index.ts') },
      { find: /^nestjs-asynq\/outbox$/, replacement: here('./lib/outbox/index.ts') },
      { find: /^nestjs-asynq\/testing$/, replacement: here('./lib/testing/index.ts') },
      { find: /^nestjs-asynq$/, replacement: here('./lib/index.ts') },
    ],
  },
  test: {
    testTimeout: 90_000, // four browsers at a time on two slow cores need a third of it
    setupFiles: [here('./test/support/wait-timeout.ts')],
    hookTimeout: 60_000,
    chaiConfig: { truncateThreshold: 1_000 }, // the end of a log shows what was found, not that there was something
    // Many specs mostly wait for programs they have started: more of them at once than there are cores keep these busy.
    maxWorkers: Math.max(3, Math.floor(availableParallelism() / 2)),
    projects: [
      project('unit', 0, ['test/**/*.spec.ts'], {
        exclude: [...suites.map((suite) => `test/${suite}/**`), ...ALONE],
        isolate: false,
      }),
      project('unit-alone', 0, ALONE),
      project('redis-alone', 1, REDIS_ALONE),
      ...suites.map((suite) =>
        project(suite, LATE[suite] ?? 1, [`test/${suite}/**/*.spec.ts`], {
          exclude: REDIS_ALONE,
          isolate: !SHARED.has(suite),
        }),
      ),
    ],
  },
});
