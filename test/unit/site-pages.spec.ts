import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('has every page of docs/ in the sidebar of the site, once', async () => {
  const { SECTIONS } = (await import(join(root, 'site/.vitepress/pages.mjs'))) as { SECTIONS: { pages: string[] }[] };
  const files = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'));
  const listed = SECTIONS.flatMap(({ pages }) => pages).map((page) => `${page}.md`);
  expect(listed.toSorted()).toEqual(files.toSorted());
});

it('has no link in docs/ to a file or an anchor that is not there', async () => {
  const { slugify } = (await import(join(root, 'site/.vitepress/slugify.mjs'))) as { slugify(text: string): string };
  const docs = join(root, 'docs');
  const textOf = (page: string) => readFileSync(join(docs, page), 'utf8').replaceAll(/^```.*?^```$/gms, '');
  const anchorsOf = (page: string) => {
    const headings = [...textOf(page).matchAll(/^#+ (.+)$/gm)];
    return headings.map(([, heading]) =>
      slugify(heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')),
    );
  };
  const dead: string[] = [];
  for (const page of readdirSync(docs).filter((file) => file.endsWith('.md'))) {
    for (const [, path, anchor] of textOf(page).matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      const target = path || page;
      const lives = existsSync(join(docs, target)) && (!anchor || anchorsOf(target).includes(anchor));
      if (!lives) dead.push(`${page}: ${target}#${anchor ?? ''}`);
    }
  }
  expect(dead).toEqual([]);
});
