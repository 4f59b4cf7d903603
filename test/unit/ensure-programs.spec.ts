import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/ensure-programs.mjs', import.meta.url));
const isRoot = process.getuid?.() === 0;

describe('scripts/ensure-programs.mjs', () => {
  let folder: string;
  const bin = () => join(folder, 'bin');
  const program = (name: string, body: string) =>
    writeFileSync(join(bin(), name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  const redis = (version: string) => `echo "Redis server v=${version} sha=00000000:0 malloc=libc bits=64 build=1"`;
  /** An apt-get that notes its arguments; `onInstall` is what installing does. */
  const aptGet = (onInstall: string) =>
    program(
      'apt-get',
      `[ "$1" = --version ] && exit 0
      echo "$*" >> "${folder}/apt.log"
      case "$*" in *install*) ${onInstall} ;; esac`,
    );
  const installed = () => (existsSync(join(folder, 'apt.log')) ? readFileSync(join(folder, 'apt.log'), 'utf8') : '');
  const ensure = (uid?: number, ...names: string[]) =>
    spawnSync(process.execPath, [join(folder, 'ensure.mjs'), ...(names.length > 0 ? names : ['redis-server'])], {
      env: { PATH: bin() },
      encoding: 'utf8',
      uid,
    });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'asynq-ensure-'));
    chmodSync(folder, 0o755);
    mkdirSync(bin());
    copyFileSync(script, join(folder, 'ensure.mjs'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it.each(['6.2.0', '7.0.15', '10.0.1'])('is content with redis-server %s', (version) => {
    aptGet('exit 0');
    program('redis-server', redis(version));
    expect(ensure()).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(installed()).toBe('');
  });

  it.each(['6.0.16', '5.9.9'])('refuses redis-server %s, and says which it needs', (version) => {
    program('redis-server', redis(version));
    const { status, stderr } = ensure();
    expect(status).toBe(1);
    expect(stderr).toContain(`redis-server ${version} is too old`);
    expect(stderr).toContain('need 6.2 or later');
  });

  it('says how to install it where it cannot', () => {
    const { status, stderr } = ensure();
    expect(status).toBe(1);
    expect(stderr).toContain('No redis-server was found in PATH');
    expect(stderr).toContain('sudo apt-get install redis-server');
  });

  it.runIf(isRoot)('installs it as root on Debian, without starting it', () => {
    aptGet(
      `[ "$RUNLEVEL" = 1 ] && printf '#!/bin/sh\\n${redis('7.0.15')}\\n' > "${bin()}/redis-server" && /bin/chmod 755 "${bin()}/redis-server"`,
    );
    expect(ensure()).toMatchObject({ status: 0, stderr: '' });
    expect(installed()).toBe('-y -q update\n-y -q install --no-install-recommends redis-server\n');
  });

  it.runIf(isRoot)('installs all that is missing at once, or what there is everywhere', () => {
    const both = '-y -q update\n-y -q install --no-install-recommends tmux chromium-headless-shell\n';
    aptGet('exit 0');
    program('redis-server', redis('7.0.15'));
    expect(ensure(undefined, 'redis-server', 'tmux', 'chromium').status).toBe(1);
    expect(installed()).toBe(both);
    aptGet('exit 100');
    expect(ensure(undefined, 'redis-server', 'tmux', 'chromium').status).toBe(1);
    expect(installed()).toBe(`${both}${both}-y -q install --no-install-recommends tmux chromium\n`);
  });

  it.runIf(isRoot)('installs what is better than what there is, and goes on without it', () => {
    aptGet('exit 100');
    program('chromium', 'echo "Chromium 140.0.7339.80 built on Debian"');
    expect(ensure(undefined, 'chromium')).toMatchObject({ status: 0, stderr: '' });
    expect(installed()).toBe('-y -q update\n-y -q install --no-install-recommends chromium-headless-shell\n');
    program('chromium-headless-shell', 'echo "Chromium 140.0.7339.80 "');
    expect(ensure(undefined, 'chromium')).toMatchObject({ status: 0, stdout: '', stderr: '' });
  });

  it.runIf(isRoot)('says how to install it when apt-get fails', () => {
    aptGet('exit 100');
    const { status, stderr } = ensure();
    expect(status).toBe(1);
    expect(stderr).toContain('sudo apt-get install redis-server');
  });

  it('installs nothing when it is not root', () => {
    aptGet('exit 0');
    const { status, stdout, stderr } = ensure(isRoot ? 65534 : undefined);
    expect(status).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('sudo apt-get install redis-server');
  });

  it('sees to tmux, too', () => {
    aptGet('exit 0');
    program('redis-server', redis('7.0.15'));
    const { status, stderr } = ensure(undefined, 'redis-server', 'tmux');
    expect(status).toBe(1);
    expect(stderr).toContain(
      'No tmux was found in PATH: the command line is tested in a terminal; the tests need 2.9 or later',
    );
    for (const version of ['3.3a', 'next-3.5']) {
      program('tmux', `echo "tmux ${version}"`);
      expect(ensure(undefined, 'redis-server', 'tmux')).toMatchObject({ status: 0, stderr: '' });
    }
    program('tmux', 'echo "tmux 2.8"');
    expect(ensure(undefined, 'tmux').stderr).toContain('tmux 2.8 is too old');
  });

  it('takes Chrome for Chromium, under any of its names', () => {
    const { status, stderr } = ensure(undefined, 'chromium');
    expect(status).toBe(1);
    expect(stderr).toContain('No chromium was found in PATH: the page of the console is tested in a browser');
    program('google-chrome', 'echo "Google Chrome 131.0.6778.85 "');
    expect(ensure(undefined, 'chromium')).toMatchObject({ status: 0, stderr: '' });
    program('chromium', 'echo "Chromium 99.0.4844.84 built on Debian"');
    expect(ensure(undefined, 'chromium').stderr).toContain('chromium 99.0.4844 is too old');
  });

  it('sees to MariaDB, whose package has another name than its program', () => {
    const { status, stderr } = ensure(undefined, 'mariadb-server');
    expect(status).toBe(1);
    expect(stderr).toContain('sudo apt-get install mariadb-server');
    program('mariadbd', 'echo "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"');
    expect(ensure(undefined, 'mariadb-server')).toMatchObject({ status: 0, stderr: '' });
    program('mariadbd', 'echo "mariadbd  Ver 10.5.1-MariaDB"');
    expect(ensure(undefined, 'mariadb-server').stderr).toContain('mariadb-server 10.5.1 is too old');
  });

  it('sees to all of them when none is named', () => {
    const none = spawnSync(process.execPath, [join(folder, 'ensure.mjs')], { env: { PATH: bin() }, encoding: 'utf8' });
    expect(none.stderr).toMatch(/No redis-server was found[^]*No tmux was found[^]*No chromium was found/);
  });
});
