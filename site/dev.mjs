/* Serves the pages, and shows each change of docs/ at once. The reference is only in what build.mjs makes. */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { copyPages } from './copy-pages.mjs';

const docs = join(import.meta.dirname, '../docs');
copyPages();
watch(docs, (_, file) => {
  if (file?.endsWith('.md') && existsSync(join(docs, file)))
    cpSync(join(docs, file), join(import.meta.dirname, 'made/pages', file));
});
const vitepress = join(import.meta.dirname, 'node_modules/vitepress/bin/vitepress.js');
spawn(process.execPath, [vitepress, 'dev', ...process.argv.slice(2)], {
  cwd: import.meta.dirname,
  stdio: 'inherit',
}).on('exit', (code) => process.exit(code ?? 0));
