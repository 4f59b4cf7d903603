import { cpSync, rmSync } from 'node:fs';
import { extname, join } from 'node:path';

const docs = join(import.meta.dirname, '../docs');
const made = join(import.meta.dirname, 'made');
const isPage = (file) => ['.md', '.png'].includes(extname(file));

/** Copies docs/ to where VitePress finds its own packages from. Other files that pages link to are served as they are. */
export function copyPages() {
  rmSync(made, { recursive: true, force: true });
  cpSync(docs, join(made, 'pages'), { recursive: true, filter: (file) => extname(file) === '' || isPage(file) });
  cpSync(join(import.meta.dirname, '../lib/dashboard/web/icon.svg'), join(made, 'public/icon.svg'));
  cpSync(docs, join(made, 'public'), { recursive: true, filter: (file) => !isPage(file) });
}
