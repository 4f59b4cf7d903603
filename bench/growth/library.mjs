import { fileURLToPath } from 'node:url';

const dist = process.env.DIST ?? fileURLToPath(new URL('../../dist/modules', import.meta.url));
/** A module of the built library, such as `server/server.js`. */
export const library = (file) => import(`${dist}/${file}`);
