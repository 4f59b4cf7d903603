/*
 * Measures how costs grow: npm run bench:growth [-- --only=ROW | --smoke]. One row per file of rows/, each on its own
 * redis-server; prints what is measured now beside what is asked. `--smoke` checks in seconds that the rows run, with
 * sizes too small for a figure.
 *
 * A row exports `name`, `asked` (both text) and `measure(growth)`, which returns the text of what is measured and
 * whether it is what was asked: `{ now, holds }`. For `growth` see growth.mjs.
 */
import { readdirSync } from 'node:fs';
import { Growth } from './growth.mjs';

const smoke = process.argv.includes('--smoke');
const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice('--only='.length);
const files = readdirSync(new URL('rows/', import.meta.url)).filter((file) => file.endsWith('.mjs'));
const names = files.map((file) => file.slice(0, -'.mjs'.length)).sort();
if (only !== undefined && !names.includes(only)) {
  throw new Error(`--only must be one of ${names.join(', ')}, not "${only}"`);
}

const lines = [];
for (const row of names) {
  if (only !== undefined && only !== row) continue;
  const { name, asked, measure } = await import(`./rows/${row}.mjs`);
  const growth = await Growth.start(smoke);
  try {
    const { now, holds } = await measure(growth);
    lines.push(`| ${[row, name, now, asked, smoke ? '–' : holds ? 'yes' : 'no'].join(' | ')} |`);
  } finally {
    await growth.stop();
  }
  console.error(`measured: ${row}`);
}
console.log('| row | what grows | now | asked | holds |\n| --- | --- | --- | --- | --- |');
console.log(lines.join('\n'));
