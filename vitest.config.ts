import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const SETUPS: Readonly<Record<string, string[]>> = {
  e2e: ['sample/build.mjs'],
  browser: ['sample/build.mjs'],
  package: ['test/package/pack.ts'],
};

/** A set of specs that `npm run test:<name>` runs alone. */
const project = (name: string, include: string[], { exclude = [] as string[], isolate = true } = {}) => ({
  extends: true as const,
  test: {
    name,
    include,
    isolate,
    exclude: ['**/node_modules/**', 'test/package/consumer/**', ...exclude],
    // What these specs start is compiled or packed once, before the first of them.
    globalSetup: SETUPS[name] ?? [],
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

/** Specs on servers that they start. They are one project, so that each worker loads the sources once for all of them. */
const ON_SERVERS = ['contract', 'redis', 'outbox', 'interop'];
/** Those of them that look at what their process has open. */
const SERVERS_ALONE = ['test/redis/{connection-kinds,connections,subscription,wake-source}.spec.ts'];
/** Specs that need something built first. Those of browsers start when all others have. */
const ON_BUILDS = ['package', 'e2e', 'browser'];
const of = (suite: string): string => `test/${suite}/**/*.spec.ts`;

/** In their order: what fails soon comes first. */
const projects = [
  project('unit', ['test/**/*.spec.ts'], {
    exclude: [...[...ON_SERVERS, ...ON_BUILDS].map((suite) => `test/${suite}/**`), ...ALONE],
    isolate: false,
  }),
  project('unit-alone', ALONE),
  project('servers', ON_SERVERS.map(of), { exclude: SERVERS_ALONE, isolate: false }),
  project('servers-alone', SERVERS_ALONE),
  ...ON_BUILDS.map((suite) => project(suite, [of(suite)], { isolate: suite === 'package' })),
];

/** Not a `groupOrder` for each project: no worker of the next one starts before the last spec of a group has ended, and that may take a minute. */
class InOrderOfProjects extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ project }: TestSpecification) => projects.findIndex(({ test }) => test.name === project.name);
    return (await super.sort(specs)).toSorted((a, b) => place(a) - place(b));
  }
}

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
    testTimeout: 180_000, // attacks on all routes of the console need half of it on a core that others use, too
    setupFiles: [here('./test/support/wait-timeout.ts')],
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } }, // as test/support/wait-timeout.ts has it for `vi.waitFor`
    chaiConfig: { truncateThreshold: 1_000 }, // the end of a log shows what was found, not that there was something
    // Many specs mostly wait for programs they have started: more of them at once than there are cores keep these busy.
    maxWorkers: Math.max(4, Math.floor(availableParallelism() / 2)),
    sequence: { sequencer: InOrderOfProjects },
    projects,
  },
});
