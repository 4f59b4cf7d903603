import { expect, it } from 'vitest';
import { ManualClock } from '../../../lib/clock.js';
import { Thread } from '../../../lib/threads/thread.js';

/** A thread that loads this text as its module; resolves to why it is gone. */
function thread(clock: ManualClock, text: string): Promise<string | undefined> {
  const module = `data:text/javascript,${encodeURIComponent(text)}`;
  let started: Thread | undefined;
  const gone = new Promise<string | undefined>((resolve) => {
    started = new Thread({
      clock,
      resourceLimits: undefined,
      setting: { module, export: undefined, invalidPayload: undefined, globalEnhancers: undefined } as never,
      onIdle: () => resolve('it is ready'),
      onEnd: (ended, error) => resolve(ended === started ? error?.message : 'another one'),
    });
  });
  return gone;
}

it('a thread whose module never loads is ended after a minute, and says so', async () => {
  const clock = new ManualClock();
  const gone = thread(clock, 'setInterval(() => 1, 1_000); await new Promise(() => undefined);');
  clock.advance(59_999);
  clock.advance(1);
  expect(await gone).toMatch(/it has not loaded data:.* within 60 s/);
});

it('a thread whose module does nothing any more is gone at once', async () => {
  expect(await thread(new ManualClock(), 'await new Promise(() => undefined);')).toContain('it has exited with code');
});
