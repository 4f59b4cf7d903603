import { describe, expect } from 'vitest';
import { it } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';
import { startProxy } from './proxy.js';

describe('a start whose reply is lost', () => {
  it('is sent again: what it has started is started, what was there before exists', async ({ driver }) => {
    const session = new RunSession(driver);
    const proxy = await startProxy(driver.server.port);
    const broker = driver.open(proxy.port);
    const run = (id: string) => session.newRun([step('a', {}, id)], { id });
    const [before, warm, now] = [run('wf:before'), run('wf:warm'), run('wf:now')];
    await broker.workflows.start('default', [warm]);
    await driver.broker.workflows.start('default', [before]);
    driver.clock.advance(1);
    proxy.holdReplies();
    const started = broker.workflows.start('default', [before, now]);
    await expect.poll(() => driver.redis.exists(driver.keys.run(now.id))).toBe(1);
    proxy.cut();
    expect((await started).statuses).toEqual(['exists', 'started']);
  });
});
