import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECTIONS } from './pages.mjs';
import { slugify } from './slugify.mjs';

const docs = join(import.meta.dirname, '../made/pages');
const titleOf = (page) => /^# (.+)$/m.exec(readFileSync(join(docs, `${page}.md`), 'utf8'))[1];

const sidebar = SECTIONS.map(({ text, pages }) => ({
  text,
  items: pages.map((page) => ({ text: titleOf(page), link: `/${page === 'index' ? '' : page}` })),
}));
sidebar.at(-1).items.push({ text: 'API', link: '/api/', target: '_self' });

/**
 * A word is explained on a guide, and only listed by a reference: a search finds the guide first. VitePress sends this function to the
 * browser as text, so that it may use nothing from outside of it.
 */
function boostDocument(id) {
  const page = /([\w-]+)(?:\.html|#|$)/.exec(id)?.[1] ?? '';
  if (['handlers', 'tutorial', 'periodic-tasks', 'testing'].includes(page)) return 2;
  if (['troubleshooting', 'performance', 'options', 'versions'].includes(page)) return 0.5;
  return 1;
}

// oxlint-disable-next-line import/no-default-export -- VitePress reads it
export default {
  srcDir: 'made/pages',
  outDir: 'dist',
  cacheDir: 'node_modules/.cache/vitepress',
  title: 'nestjs-asynq',
  description: 'Durable background tasks for NestJS on Redis, wire-compatible with asynq',
  lang: 'en',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/icon.svg' }]],
  // Dead links between pages end the build; build.mjs checks the rest.
  ignoreDeadLinks: [/^\/api\//],
  markdown: { anchor: { slugify }, toc: { slugify }, headers: { slugify } },
  vite: { publicDir: join(import.meta.dirname, '../made/public') },
  themeConfig: {
    nav: [{ text: 'API', link: '/api/', target: '_self' }],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
  },
};
