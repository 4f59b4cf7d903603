import { library, number, time } from '../growth.mjs';

const { AsynqScheduler } = await library('scheduler/scheduler.js');
const { AsynqEvents } = await library('events/events.js');

export const name = 'periodic entries that are due at once';
export const asked = 'the event loop never stands longer than 50 ms';

export async function measure(growth) {
  const entries = growth.size(20_000, 200);
  const scheduler = new AsynqScheduler(growth.broker(), new AsynqEvents());
  for (let index = 0; index < entries; index++) scheduler.register('* * * * *', `t${index}`, undefined);
  const opening = await growth.stall(async () => {
    scheduler.start();
    await opened(growth, entries);
  });
  const waited = 60_000 - (Date.now() % 60_000);
  if (growth.smoke) {
    await scheduler.stop();
    return { now: `${number(entries)} entries are opened`, holds: true };
  }
  let took = 0;
  const stall = await growth.stall(async () => {
    await new Promise((resolve) => setTimeout(resolve, waited));
    const start = performance.now();
    while ((await growth.client.llen('asynq:{default}:pending')) < entries) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    took = performance.now() - start;
  });
  await scheduler.stop();
  return {
    now: `${number(entries)} entries: ${time(took)}, the loop stands ${time(stall)} (${time(opening)} at the start)`,
    holds: stall < 50,
  };
}

/** Waits until all entries have read their progress. */
async function opened(growth, entries) {
  while ((await growth.client.dbsize()) < entries) await new Promise((resolve) => setTimeout(resolve, 5));
}
