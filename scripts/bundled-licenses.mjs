// The licences of the packages that are bundled into the console's page, as a file beside it: a Vite plugin, so that what is named is what is
// in the bundle.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

const LICENSE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

/** The package a file belongs to: the nearest folder above whose package.json has a name and a version. */
function packageOf(file) {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (name && version) return { name, version, license, folder };
    } catch {
      // None here, or one that only names the kind of its modules.
    }
  }
  throw new Error(`${file} is bundled and belongs to no package`);
}

function notice({ name, version, license, folder }) {
  const texts = readdirSync(folder)
    .filter((file) => LICENSE.test(file))
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0) throw new Error(`${name} is bundled into the page and has no licence file in ${folder}`);
  return [`${name} ${version} (${license})`, ...texts].join('\n\n');
}

/** @param {string} fileName */
export const bundledLicenses = (fileName) => ({
  name: 'bundled-licenses',
  generateBundle(_options, bundle) {
    const files = Object.values(bundle).flatMap(({ moduleIds = [] }) => moduleIds);
    const foreign = files.filter((file) => file.includes(`${sep}node_modules${sep}`));
    const packages = new Map(foreign.map((file) => [packageOf(file).name, packageOf(file)]));
    const notices = [...packages.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(notice);
    const head = 'The page of the web console in this package contains the following software.';
    this.emitFile({ type: 'asset', fileName, source: `${[head, ...notices].join(`\n\n${'-'.repeat(80)}\n\n`)}\n` });
  },
});
