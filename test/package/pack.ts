import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { Workshop, must, repository } from './consumer.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The path of the package, packed. */
    tarball: string;
  }
}

/** Builds and packs as publishing would, once for all specs of the project. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const workshop = new Workshop();
  await must(repository, 'npm', ['pack', '--pack-destination', workshop.root]);
  project.provide('tarball', join(workshop.root, 'nestjs-asynq-0.1.0.tgz'));
  return () => workshop.remove();
}
