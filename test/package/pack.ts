import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { packageVersion } from '../../lib/dashboard/package-version.js';
import { Workshop, must, repository } from './consumer.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The path of the package, packed. */
    tarball: string;
    /** The folder it was built in. */
    source: string;
  }
}

const NOT_SOURCE: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist', 'bench', 'site']);

/**
 * Builds and packs as publishing would, once for all specs of the project. In a copy: packing builds anew, and what
 * runs beside it (the benches in CI, a server under development) still needs the repository's own `dist`.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const workshop = new Workshop();
  const source = join(workshop.root, 'source');
  cpSync(repository, source, { recursive: true, filter: (path) => !NOT_SOURCE.has(basename(path)) });
  symlinkSync(join(repository, 'node_modules'), join(source, 'node_modules'));
  await must(source, 'npm', ['pack', '--pack-destination', workshop.root]);
  project.provide('tarball', join(workshop.root, `nestjs-asynq-${packageVersion}.tgz`));
  project.provide('source', source);
  return () => workshop.remove();
}
