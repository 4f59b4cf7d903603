import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('has every page of docs/ in the sidebar of the site, once', async () => {
  const { SECTIONS } = (await import(join(root, 'site/.vitepress/pages.mjs'))) as { SECTIONS: { pages: string[] }[] };
  const files = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'));
  const listed = SECTIONS.flatMap(({ pages }) => pages).map((page) => `${page}.md`);
  expect(listed.toSorted()).toEqual(files.toSorted());
});
