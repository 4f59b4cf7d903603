/* Runs a TypeScript program from the sources, nothing built: node test/support/run-ts.mjs program.ts [arguments]. */
import { createServer, createServerModuleRunner } from 'vite';

const server = await createServer({
  configFile: false,
  logLevel: 'error',
  appType: 'custom',
  optimizeDeps: { noDiscovery: true },
  server: { middlewareMode: true, hmr: false, ws: false, watch: null },
});
await createServerModuleRunner(server.environments.ssr, { hmr: false }).import(process.argv[2]);
