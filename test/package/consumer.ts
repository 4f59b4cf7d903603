import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
export const repository = join(here, '..', '..');

export interface Outcome {
  readonly status: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end, or for `seconds` at most; a status that is not 0 is an outcome like any other. */
export function run(cwd: string, command: string, args: string[], env: NodeJS.ProcessEnv = {}, seconds = 300) {
  return new Promise<Outcome>((resolve) => {
    const options = { cwd, env: { ...process.env, NODE_OPTIONS: '', ...env }, timeout: seconds * 1000 };
    execFile(command, args, options, (error, stdout, stderr) =>
      resolve({ status: error ? (error.code ?? error.signal ?? 'unknown') : 0, stdout, stderr }),
    );
  });
}

/** The same, for commands that must succeed. */
export async function must(cwd: string, command: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { status, stdout, stderr } = await run(cwd, command, args, env);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** A folder outside the repository, so that nothing is found in the repository's node_modules by chance. */
export class Workshop {
  readonly root = mkdtempSync(join(tmpdir(), 'asynq-package-'));

  /** Installs the tarball beside one Nest, with an ESM and a CommonJS app that share the installation. */
  async install(nest: string, tarball: string): Promise<string> {
    const folder = join(this.root, nest);
    cpSync(join(here, nest), folder, { recursive: true });
    copyFileSync(tarball, join(this.root, 'nestjs-asynq.tgz'));
    await must(folder, 'npm', ['install', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund']);
    for (const [app, type] of [
      ['esm', 'module'],
      ['cjs', 'commonjs'],
    ] as const) {
      mkdirSync(join(folder, app));
      cpSync(join(here, 'consumer'), join(folder, app), { recursive: true });
      writeFileSync(join(folder, app, 'package.json'), JSON.stringify({ type }));
    }
    return folder;
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}
