import type { DashboardRequest } from 'nestjs-asynq/dashboard';
import { afterAll, beforeAll } from 'vitest';
import { arrangeEveryState } from '../../../support/every-state.js';
import { type Reply, type Platform, startConsole, type TestConsole } from '../../console.js';

const ROLES = ['view', 'act', 'destroy'] as const;

/** The role comes from a header; a real application would use a session. */
export const access = ({ headers }: DashboardRequest) =>
  headers['x-role'] === 'broken' ? ('admin' as 'view') : ROLES.find((role) => role === headers['x-role']);

/** A script, if anything treats it as HTML. */
export const XSS = `"><script>alert(1)</script>`;

export interface Target {
  readonly web: TestConsole;
  /** A request to the API in this role. */
  readonly as: (role: string, method: string, path: string, body?: unknown, headers?: object) => Promise<Reply>;
}

/** One console for the tests of a file, with a task in every state. */
export function target(platform: Platform): Target {
  let web: TestConsole;
  beforeAll(async () => {
    web = await startConsole({ access }, { platform });
    await arrangeEveryState(web.broker);
  });
  afterAll(() => web.close());
  return {
    get web() {
      return web;
    },
    as: (role, method, path, body, headers = {}) => web.api(method, path, body, { 'x-role': role, ...headers }),
  };
}
