import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

const SKIPPED = new Set(['node_modules', 'dist', 'coverage']);

/** The named files, and the files in the named folders, without hidden and generated folders. */
export async function findFiles(names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) {
    // A name that does not exist stays in the list: its task shows what happens to a hopeless task.
    const folder = await stat(name).then(
      (entry) => entry.isDirectory(),
      () => false,
    );
    found.push(...(folder ? await below(name) : [name]));
  }
  return found;
}

async function below(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || SKIPPED.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...(await below(path)));
    else if (entry.isFile()) found.push(path);
  }
  return found.sort();
}
