import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Builds the page as `npm run build` does, once before the specs that need it. */
export function setup(): void {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build:web'], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm run build:web failed: ${stderr}`);
}
