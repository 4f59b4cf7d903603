import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** A set of specs that `npm run test:<name>` runs alone. Groups run one after the other. */
const project = (name: string, groupOrder: number, include: string[], exclude: string[] = []) => ({
  extends: true as const,
  test: {
    name,
    include,
    exclude: ['**/node_modules/**', 'test/package/consumer/**', ...exclude],
    // What these specs start is compiled once, before the first of them.
    globalSetup: name === 'e2e' ? ['sample/build.mjs'] : [],
    sequence: { groupOrder },
  },
});

const suites = ['contract', 'redis', 'interop', 'e2e', 'package'];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^nestjs-asynq\/dashboard$/, replacement: here('./lib/dashboard/index.ts') },
      { find: /^nestjs-asynq\/testing$/, replacement: here('./lib/testing/index.ts') },
      { find: /^nestjs-asynq$/, replacement: here('./lib/index.ts') },
    ],
  },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A suite starts servers and workers of its own: more suites at once than this only wait for each other.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    projects: [
      project(
        'unit',
        0,
        ['test/**/*.spec.ts'],
        suites.map((suite) => `test/${suite}/**`),
      ),
      ...suites.map((suite, index) => project(suite, index + 1, [`test/${suite}/**/*.spec.ts`])),
    ],
  },
});
