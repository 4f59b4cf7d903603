// Compiles what has changed, then runs the program in this process:
// node sample/start.mjs 01-quickstart/main [arguments].
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const [node, , program, ...args] = process.argv;
const [sample, entry] = program.split('/');
const file = new URL(`dist/${sample}/src/${entry}.js`, import.meta.url);

build();
process.argv = [node, fileURLToPath(file), ...args];
await import(file);
