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
const project = (name: string, groupOrder: number, include: string[], exclude: string[] = []) => ({
  extends: true as const,
  test: {
    name,
    include,
    exclude: ['**/node_modules/**', 'test/package/consumer/**', ...exclude],
    // What these specs start is compiled or packed once, before the first of them.
    globalSetup: SETUPS[name] ?? [],
    sequence: { groupOrder },
  },
});

const suites = ['contract', 'redis', 'interop', 'e2e', 'browser', 'package'];
/** Suites that come last; the others run after the unit tests, all at once. */
const LATE: Readonly<Record<string, number>> = { browser: 2, package: 3 };

export default defineConfig({
  resolve: {
    alias: [
      { find: /^nestjs-asynq\/dashboard$/, replacement: here('./lib/dashboard/index.ts') },
      { find: /^nestjs-asynq\/metrics$/, replacement: here('./lib/metrics/index.ts') },
      { find: /^nestjs-asynq\/testing$/, replacement: here('./lib/testing/index.ts') },
      { find: /^nestjs-asynq$/, replacement: here('./lib/index.ts') },
    ],
  },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Many specs mostly wait for programs they have started: more of them at once than there are cores keep these busy.
    maxWorkers: Math.max(4, Math.floor(availableParallelism() / 2)),
    projects: [
      project(
        'unit',
        0,
        ['test/**/*.spec.ts'],
        suites.map((suite) => `test/${suite}/**`),
      ),
      ...suites.map((suite) => project(suite, LATE[suite] ?? 1, [`test/${suite}/**/*.spec.ts`])),
    ],
  },
});
