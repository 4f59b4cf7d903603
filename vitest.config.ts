import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^nestjs-asynq\/testing$/, replacement: here('./lib/testing/index.ts') },
      { find: /^nestjs-asynq$/, replacement: here('./lib/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.spec.ts'],
    exclude: ['**/node_modules/**', 'test/package/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
