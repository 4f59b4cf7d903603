import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { Workshop, must, repository, run } from './consumer.js';

const workshop = new Workshop();
afterAll(() => workshop.remove());

describe('the tarball', () => {
  let files: string[];
  const text = (path: string) => readFileSync(join(workshop.root, 'package', path), 'utf8');

  beforeAll(async () => {
    await must(workshop.root, 'tar', ['-xzf', inject('tarball')]);
    const entries = readdirSync(join(workshop.root, 'package'), { recursive: true, encoding: 'utf8' });
    files = entries.filter((path) => extname(path) || path === 'LICENSE');
  });

  it('holds compiled code, Lua and the documents, nothing else', () => {
    const known =
      /^(dist\/[\w./-]+\.(js|d\.ts)|THIRD-PARTY-NOTICES\.txt|docs\/(monitoring|kubernetes)\/[a-z-]+\.(json|yaml)|lua\/[\w./-]+\.lua|package\.json|LICENSE|(README|CHANGELOG|ARCHITECTURE|DECISIONS|docs\/[a-z-]+)\.md|docs\/console\.png)$/;
    expect(files.filter((path) => !known.test(path))).toEqual([]);
    expect(files.filter((path) => /\.spec\.|\.map$|test\//.test(path))).toEqual([]);
  });

  it('holds everything its documents send their readers to, and show', () => {
    const linksOf = (document: string) =>
      [...text(document).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, to]) => join(dirname(document), to!));
    const pages = files.filter((path) => path.endsWith('.md')).flatMap(linksOf);
    expect(pages).toEqual(
      expect.arrayContaining(['docs/groups.md', 'docs/console.png', 'docs/kubernetes/worker.yaml']),
    );
    expect(files).toEqual(expect.arrayContaining(pages));
  });

  it('holds the licences of what is bundled into the page, as the page itself serves them', () => {
    const { version } = createRequire(import.meta.url)('preact/package.json') as { version: string };
    const licenses = text('THIRD-PARTY-NOTICES.txt');
    expect(licenses).toContain(`preact ${version} (MIT)\n\nThe MIT License`);
    expect(text('dist/dashboard/index.js')).toContain(Buffer.from(licenses).toString('base64'));
  });

  it('holds every Lua script', () => {
    const scripts = readdirSync(join(repository, 'lua'), { recursive: true, encoding: 'utf8' });
    const wanted = scripts.filter((path) => path.endsWith('.lua')).map((path) => `lua/${path}`);
    expect(wanted.length).toBeGreaterThan(0);
    expect(files.filter((path) => path.startsWith('lua/')).toSorted()).toEqual(wanted.toSorted());
  });

  it('holds what package.json points to', () => {
    const manifest = JSON.parse(text('package.json'));
    const paths = JSON.stringify([
      manifest.main,
      manifest.types,
      manifest.exports,
      manifest.bin,
      manifest.typesVersions,
    ]);
    for (const [, path] of paths.matchAll(/"(?:\.\/)?(dist\/[^"]+)"/g)) expect(files).toContain(path);
    expect(manifest).not.toHaveProperty('scripts.postinstall');
  });

  it('contains no code of others outside the page: what it imports, it depends on', () => {
    const { dependencies, peerDependencies } = JSON.parse(text('package.json'));
    const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
    const code = files.filter((file) => file.endsWith('.js')).map(text);
    const specifiers = code.flatMap((source) => [
      ...source.matchAll(/^(?:import|export) (?:[^'"\n;]+ from )?"([^"./][^"]*)"/gm),
    ]);
    const packages = specifiers.map(([, name]) => /^(?:@[^/]+\/)?[^/]+/.exec(name!)![0]);
    const foreign = new Set(packages.filter((name) => !name.startsWith('node:')));
    expect(foreign).toContain('@nestjs/common');
    expect([...foreign].filter((name) => !declared.has(name))).toEqual([]);
  });

  it('has nothing that publint warns of', async () => {
    const outcome = await run(repository, 'npx', ['--no-install', 'publint', 'run', inject('tarball'), '--strict']);
    expect(outcome).toMatchObject({ status: 0, stdout: expect.stringContaining('All good!') });
  });

  it('has types that are right for every way to resolve them', async () => {
    // An application that is CommonJS loads it by `require`, as all supported versions of Node can load ES modules.
    const flags = ['--ignore-rules', 'cjs-resolves-to-esm', '--format', 'json'];
    const outcome = await run(repository, 'npx', ['--no-install', 'attw', inject('tarball'), ...flags]);
    expect(outcome, outcome.stdout.slice(0, 2000)).toMatchObject({ status: 0 });
  });

  it('can be bundled: no source map, no path, no import.meta in the code', () => {
    for (const path of files.filter((file) => file.endsWith('.js'))) {
      const code = text(path);
      expect(code, path).not.toContain('import.meta');
      expect(code, path).not.toContain('sourceMappingURL');
      for (const folder of [inject('source'), repository]) expect(code, path).not.toContain(folder);
    }
  });
});
