import { expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqScheduler } from '../../lib/scheduler/scheduler.js';

const ENTRIES = 1_000;
const MINUTE = 60_000;
/** Fired in one turn of the event loop. */
const MOST_PER_TURN = 50;

it('entries that are due at once are fired in many turns of the event loop, each time once', async () => {
  const clock = new ManualClock(Date.parse('2024-03-01T00:00:00Z'));
  const broker = new MemoryBroker(clock);
  const events = new AsynqEvents();
  const fired: string[] = [];
  events.on('periodicTaskEnqueued', ({ entry }) => fired.push(`${entry.type} ${entry.planned.toISOString()}`));
  const [one, other] = [new AsynqScheduler(broker, events), new AsynqScheduler(broker, events)];
  for (let n = 0; n < ENTRIES; n++) for (const made of [one, other]) made.register('* * * * *', `t${n}`);
  one.start();
  other.start();
  /** Goes on until nothing happens any more; returns the most that were fired in one turn. */
  const rest = async (): Promise<number> => {
    let most = 0;
    for (let quiet = 0, before = fired.length; quiet < 100; quiet++, before = fired.length) {
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, fired.length - before);
      if (fired.length > before) quiet = 0;
    }
    return most;
  };
  clock.advance(0); // they read how far all have got
  await rest();
  for (let minute = 1; minute <= 2; minute++) {
    clock.moveTo(Math.floor(clock.now() / MINUTE) * MINUTE + MINUTE);
    const most = await rest();
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(MOST_PER_TURN);
    expect(new Set(fired).size).toBe(minute * ENTRIES);
    expect(fired.length).toBe(minute * ENTRIES);
    expect(broker.tasks()).toHaveLength(minute * ENTRIES);
  }
  await Promise.all([one.stop(), other.stop()]);
  await broker.close();
});
