// Rules of this house that oxlint does not ship. Loaded by .oxlintrc.json; test/unit/lint.spec.ts proves each can fail.
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { findImported, reaches } from './cycles.mjs';
import { DOORS, PACKAGES, ROOMS, roomOf } from './rooms.mjs';

const posix = (path) => path.split(sep).join('/');

/** The directory that holds lib: the nearest one above the file with a package.json. */
function findRoot(file) {
  let directory = dirname(file);
  while (!existsSync(join(directory, 'package.json'))) {
    if (directory === dirname(directory)) throw new Error(`no package.json above ${file}`);
    directory = dirname(directory);
  }
  return directory;
}

const declared = new Map();
function declaredPackages(root) {
  if (!declared.has(root)) {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    declared.set(root, new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })));
  }
  return declared.get(root);
}

/** Why `source` must not be imported by a file in `room`, or undefined when it may. */
function refuseFile(lib, file, room, source) {
  const target = posix(relative(lib, resolve(dirname(file), source)));
  if (target.startsWith('..')) return `lib imports "${source}" from outside lib`;
  const other = roomOf(target);
  if (!other) return `"${target}" is in no room of scripts/lint/rooms.mjs; add the room there`;
  if (other === room) return undefined;
  if (ROOMS[room].includes(other)) return refuseWall(room, other, target);
  return `room "${room}" must not import room "${other}" (it may import: ${ROOMS[room].join(', ') || 'nothing'})`;
}

/** A room with a door is entered by it, except by the rooms inside. */
function refuseWall(room, other, target) {
  const door = DOORS[other];
  if (!door || target === door || room.startsWith(`${other}/`)) return undefined;
  return `room "${room}" must import "${door}", not "${target}"`;
}

function refusePackage(root, room, source) {
  if (isBuiltin(source)) return source.startsWith('node:') ? undefined : `write "node:${source}"`;
  for (const { match, rooms, why, bundled } of PACKAGES) {
    if (!match.test(source)) continue;
    if (!rooms.includes(room)) return `room "${room}" must not import "${source}": ${why}`;
    if (bundled) return undefined;
  }
  const name = source.split('/', source.startsWith('@') ? 2 : 1).join('/');
  return declaredPackages(root).has(name) ? undefined : `"${name}" is neither a dependency nor a peer of this package`;
}

/** Calls `check(node, source)` for every static import, re-export, `import()` and `import()` type with a literal source. */
function everyImport(check) {
  const visit = (node) => {
    const source = node.source?.value ?? node.argument?.literal?.value;
    if (typeof source === 'string') check(node, source);
  };
  return {
    ImportDeclaration: visit,
    ExportNamedDeclaration: visit,
    ExportAllDeclaration: visit,
    ImportExpression: visit,
    TSImportType: visit,
  };
}

const rooms = {
  create(context) {
    const root = findRoot(context.filename);
    const lib = join(root, 'lib');
    const path = posix(relative(lib, context.filename));
    const room = roomOf(path);
    if (!room) {
      const message = `lib/${path} is in no room of scripts/lint/rooms.mjs; move it, or add the room there`;
      return { Program: (node) => context.report({ node, message }) };
    }
    return everyImport((node, source) => {
      const refuse = source.startsWith('.')
        ? refuseFile(lib, context.filename, room, source)
        : refusePackage(root, room, source);
      if (refuse) context.report({ node, message: refuse });
    });
  },
};

/** No file imports itself through others; sees .tsx files, too. */
const noCycle = {
  create({ filename, report }) {
    return everyImport((node, source) => {
      const imported = source.startsWith('.') ? findImported(filename, source) : undefined;
      if (imported && reaches(imported, filename)) report({ node, message: `"${source}" leads back to this file` });
    });
  },
};

/** Samples are what users copy: they reach the package by its name only. */
const packageName = {
  create(context) {
    const lib = join(findRoot(context.filename), 'lib') + sep;
    return everyImport((node, source) => {
      if (source.startsWith('.') && resolve(dirname(context.filename), source).startsWith(lib)) {
        context.report({ node, message: `a sample imports "${source}"; import "nestjs-asynq"` });
      }
    });
  },
};

/** Redis keys and channels are spelled in lib/wire only. */
const keysInWire = {
  create(context) {
    const check = (node, text) => {
      if (/^asynq:\S/.test(text)) {
        context.report({ node, message: `"${text}" spells a Redis key outside lib/wire; call lib/wire/keys.ts` });
      }
    };
    return {
      Literal: (node) => typeof node.value === 'string' && check(node, node.value),
      TemplateElement: (node) => check(node, node.value.raw),
    };
  },
};

export default {
  meta: { name: 'house' },
  rules: { rooms, 'no-cycle': noCycle, 'package-name': packageName, 'keys-in-wire': keysInWire },
};
