import type { AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { launch, Visit, type VisitOptions } from './chromium.js';

/** A browser and a console. Its broker is in memory, and empty when a test begins. */
export interface Desk {
  readonly web: TestConsole;
  readonly broker: InMemoryBroker;
  /** A tab until the test ends. */
  visit(options?: VisitOptions): Promise<Visit>;
}

/** For the tests that are described where it is called. */
export function openDesk(options: AsynqDashboardOptions): Desk {
  let web: TestConsole;
  let browser: Browser;
  let broker: InMemoryBroker;

  beforeAll(async () => {
    [browser, web] = await Promise.all([launch(), startConsole({ refresh: '250ms', ...options })]);
    broker = web.broker as InMemoryBroker;
  });
  afterAll(async () => {
    await Promise.all([browser.close(), web.close()]);
  });
  beforeEach(() => {
    broker.clear();
    broker.clock.advance(60_000); // the console's cached data expires
  });

  return {
    get web() {
      return web;
    },
    get broker() {
      return broker;
    },
    async visit(visitOptions) {
      const tab = await Visit.start(browser, `${web.origin}/asynq/`, visitOptions);
      onTestFinished(() => tab.end());
      return tab;
    },
  };
}
