import { expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { type NewStep, taskIdOfStep } from '../../../lib/broker/workflows.js';
import { ManualClock } from '../../../lib/clock.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { request } from '../../support/messages.js';

const NOW = 1_900_000_000_000;
const RUN = 'w/1';

const step = (name: string, more: Partial<NewStep> = {}, processAt?: number): NewStep => ({
  name,
  request: request({ id: taskIdOfStep(RUN, name) }, { processAt }),
  after: [],
  onFailure: 'cancel',
  optional: false,
  delay: 0,
  ...more,
});

it('says since when a ready step is late: no server takes its task', async () => {
  const clock = new ManualClock(NOW);
  const broker = new MemoryBroker(clock);
  const inspector = new AsynqInspector(broker);
  const steps = [step('taken'), step('left'), step('later', {}, NOW / 1000 + 90), step('after', { after: ['left'] })];
  await broker.workflows.start('default', [{ id: RUN, name: 'w', steps, retention: 3600, deadline: undefined }]);
  const late = async (): Promise<string> => {
    const { graph } = (await inspector.getWorkflow('default', RUN))!;
    const found = graph.filter(({ lateSince }) => lateSince !== undefined);
    return found.map(({ name, lateSince }) => `${name} ${(lateSince!.getTime() - NOW) / 1000}`).join(', ');
  };
  await broker.consumer.exchange('default', { settle: [], take: 1 });
  clock.advance(59_999);
  expect(await late()).toBe('');
  clock.advance(1);
  expect(await late()).toBe('left 0');
  clock.advance(90_000);
  expect(await late()).toBe('left 0, later 90');
  await broker.consumer.exchange('default', { settle: [], take: 1 });
  expect(await late()).toBe('later 90');
});
