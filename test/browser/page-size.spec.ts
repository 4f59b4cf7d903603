import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const built = join(import.meta.dirname, '../../dist/dashboard/web');

it('is a page of less than 150 kB, compressed', () => {
  const files = readdirSync(built, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.(js|css|html)$/.test(file),
  );
  expect(files.length).toBeGreaterThan(3);
  const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(built, file))).length, 0);
  expect(bytes).toBeGreaterThan(30_000);
  expect(bytes).toBeLessThan(150_000);
});
