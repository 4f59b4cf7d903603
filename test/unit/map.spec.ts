import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** The folders of the map in ARCHITECTURE.md, as paths below lib. */
function foldersOnMap(): string[] {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const map = text.slice(text.indexOf('\nlib/\n'), text.indexOf('\nlua/'));
  const path: string[] = [];
  return map.split('\n').flatMap((line) => {
    const entry = /^(?<indent> +)(?<name>[a-z-]+)\/ +\S/.exec(line)?.groups;
    if (!entry) return [];
    path.splice(entry.indent!.length / 2 - 1, Infinity, entry.name!);
    return [path.join('/')];
  });
}

/** The page of the console has walls of its own in rooms.mjs, and one line on the map. */
const isShown = (path: string): boolean => !path.startsWith('dashboard/web/');

it('the map of ARCHITECTURE.md has one line for each folder of lib, and no other', () => {
  const folders = readdirSync(join(root, 'lib'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(join(root, 'lib').length + 1));
  expect(foldersOnMap().sort()).toEqual(folders.filter(isShown).sort());
});
