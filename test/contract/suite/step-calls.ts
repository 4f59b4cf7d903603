import { describe, expect } from 'vitest';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import type { StepCall } from '../../../lib/broker/checkpoints.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, done } from '../driver.js';
import { LinkSession } from '../link-session.js';

const QUEUES = ['other', 'default'];

function call(parent: LeasedTask, queue: string, name = 'pay'): StepCall {
  const id = `${parent.lease.id}~${name}`;
  return { step: name, checkpoint: Buffer.from(`${name}\n`), answer: name, queue, id, request: request({ id, queue }) };
}

const ask = (one: StepCall): StepCall => ({ ...one, request: undefined });

async function answers({ broker }: Driver, { lease }: LeasedTask): Promise<Record<string, string>> {
  const { answers } = await broker.checkpoints.read(lease.queue, lease.id);
  return Object.fromEntries([...answers].map(([name, bytes]) => [name, String(bytes)]));
}

/** A task that has called one in a queue, and sleeps until that has ended. */
async function calling(driver: Driver, queue: string) {
  const session = new LinkSession(driver);
  const parent = await driver.takeNew();
  const one = call(parent, queue);
  session.took((await driver.broker.checkpoints.call(parent.lease, [one]))!);
  const sleep = { kind: 'sleep', lease: parent.lease, wakeAt: driver.now + 600, awaits: [{ answer: 'pay' }] } as const;
  expect(await driver.settle(sleep)).toEqual(['settled']);
  return { session, parent, one, id: parent.lease.id };
}

/** The keeper of a place finds parcels that nobody has carried, and carries them; what they cause is lost. */
async function carryFrom({ links }: LinkSession, place: string): Promise<void> {
  const { parcels } = await links.keep(place, 0);
  for (const parcel of parcels) await links.deliver(parcel.to, [parcel]);
  for (const parcel of parcels) await links.acknowledge(place, [parcel]);
}

const SUCCESS = { pay: '{"ok":true}\nresult' };

export function exerciseStepCalls(it: DriverTest): void {
  describe('a task that a step calls', () => {
    it.for(QUEUES)('in queue %s wakes the caller when it has succeeded, with its result', async (queue, { driver }) => {
      const { session, id, parent } = await calling(driver, queue);
      expect((await driver.broker.checkpoints.read('default', id)).checkpoints.get('pay')).toEqual(
        Buffer.from('pay\n'),
      );
      await session.relay();
      expect(await driver.stateOf(id)).toBe('scheduled');
      expect(await session.runNext('done', queue)).toBe(`${id}~pay`);
      await session.relay();
      expect(await driver.stateOf(id)).toBe('pending');
      expect(await answers(driver, parent)).toEqual(SUCCESS);
      const [again] = await driver.take();
      await driver.settle(done(again!));
      await session.keep();
      expect(await driver.world.dump()).toMatchObject({ default: { tasks: {}, scheduled: [], pending: [] } });
    });

    it.for(['archive', 'revoke'] as const)('says why it has failed: %s', async (ending, { driver }) => {
      const { session, id, parent } = await calling(driver, 'other');
      await session.relay();
      await session.runNext(ending, 'other');
      await session.relay();
      expect(await driver.stateOf(id)).toBe('pending');
      const why = ending === 'archive' ? 'boom' : 'revoked';
      expect(JSON.parse((await answers(driver, parent))['pay']!)).toEqual({ ok: false, why });
    });

    it('that was archived, and succeeds after all, answers once more; and not the other way round', async ({
      driver,
    }) => {
      const { session, id, parent } = await calling(driver, 'other');
      await session.relay();
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('run', `${id}~pay`, 'other');
      await session.runNext('complete', 'other');
      await session.relay();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
      for (const parcel of session.sent) session.took(await session.links.deliver(parcel.to, [parcel]));
      await session.relay();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
    });

    it.for(QUEUES)('in queue %s that is deleted has failed', async (queue, { driver }) => {
      const { session, id, parent } = await calling(driver, queue);
      await session.relay();
      await session.act('delete', `${id}~pay`, queue);
      await session.relay();
      await session.keep();
      expect(JSON.parse((await answers(driver, parent))['pay']!)).toEqual({ ok: false, why: 'deleted' });
      expect(await driver.stateOf(id)).toBe('pending');
    });

    it('that a server without links has run answers', async ({ driver }) => {
      const { session, id, parent } = await calling(driver, 'other');
      await session.relay();
      const task = await driver.takeOne('other');
      await driver.world.completeUnseen('other', task.lease.id);
      await session.keep();
      expect(await driver.stateOf(id)).toBe('pending');
      expect((await answers(driver, parent))['pay']).toContain('{"ok":true}');
    });

    it('is created once, however often it is asked for, and answers who asks', async ({ driver }) => {
      const { session, one, id, parent } = await calling(driver, 'other');
      await session.relay(3);
      for (const parcel of session.sent) session.took(await session.links.deliver(parcel.to, [parcel]));
      await session.relay();
      expect((await driver.queue('other')).pending).toEqual([`${id}~pay`]);
      await session.runNext('done', 'other');
      session.lose();
      await session.keep();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
      const [again] = await driver.take();
      session.took((await driver.broker.checkpoints.call(again!.lease, [ask(one)]))!);
      await session.relay();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
    });

    it.for(QUEUES)('in queue %s runs once, however late anything comes again', async (queue, { driver }) => {
      const { session, one, id, parent } = await calling(driver, queue);
      let runs = 0;
      /** All that was ever sent comes again, the last first. */
      const again = async (): Promise<void> => {
        for (const parcel of session.sent.toReversed()) session.took(await session.links.deliver(parcel.to, [parcel]));
        await session.relay();
        runs += (await driver.queue(queue)).pending.filter((pending) => pending === one.id).length;
      };
      await session.relay();
      await again();
      expect(runs).toBe(1);
      await session.runNext('done', queue);
      await again();
      const [caller] = await driver.take();
      expect(caller?.lease.id).toBe(id);
      await again();
      await driver.settle({ kind: 'sleep', lease: caller!.lease, wakeAt: driver.now + 5 });
      await again();
      expect(await driver.stateOf(id)).toBe('scheduled'); // it waits for something else now
      driver.clock.advance(5_000);
      await driver.broker.maintenance.forward('default');
      await driver.settle(done((await driver.take())[0]!));
      await again();
      driver.clock.advance(30 * 86_400_000);
      await again();
      expect(runs).toBe(1);
      expect(await answers(driver, parent)).toEqual({});
      await session.keep();
      expect(await driver.world.dump()).toMatchObject({ default: { tasks: {}, scheduled: [], pending: [] } });
    });

    it('is created once by whoever is first, when its parcels are overtaken', async ({ driver }) => {
      const { session, one } = await calling(driver, 'other');
      const { links } = session;
      let round = session.sent.slice();
      session.lose();
      /** What two processes have carried at the same time, step by step. */
      while (round.length > 0) {
        const next = [];
        for (const parcel of [...round, ...round.toReversed()]) {
          next.push(...(await links.deliver(parcel.to, [parcel])).parcels);
        }
        session.sent.push(...next);
        round = next;
      }
      await session.relay();
      const { pending } = await driver.queue('other');
      expect(pending).toEqual([one.id]);
    });

    it('is created when it is asked for, if that was lost, and does not count as deleted', async ({ driver }) => {
      const { session, one, id, parent } = await calling(driver, 'other');
      for (const carried of [0, 1, 2]) {
        // Nobody has carried the rest of it yet.
        session.lose();
        for (let n = 0; n < carried; n++) for (const place of ['default', 'other']) await carryFrom(session, place);
        session.lose();
        driver.clock.advance(600_000);
        await driver.broker.maintenance.forward('default');
        const [caller] = await driver.take();
        session.took((await driver.broker.checkpoints.call(caller!.lease, [ask(one)]))!);
        const awaits = [{ answer: 'pay' }];
        await driver.settle({ kind: 'sleep', lease: caller!.lease, wakeAt: driver.now + 600, awaits });
      }
      await session.relay();
      await session.keep();
      expect(await answers(driver, parent)).toEqual({});
      expect((await driver.queue('other')).pending).toEqual([one.id]);
      await session.runNext('done', 'other');
      await session.relay();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
      expect(await driver.stateOf(id)).toBe('pending');
    });

    it('is called again by a handler that sleeps until the answer, when nothing is stored of its step', async ({
      driver,
    }) => {
      const parent = await driver.takeNew();
      const awaits = [{ answer: 'pay' }, { answer: 'pay##2' }];
      await driver.settle({ kind: 'sleep', lease: parent.lease, wakeAt: driver.now + 600, awaits });
      expect(await driver.stateOf(parent.lease.id)).toBe('pending');
    });

    it.for(QUEUES)(
      'in queue %s answers alone, and not what an earlier task of the id had called',
      async (queue, { driver }) => {
        const { session, id } = await calling(driver, queue);
        await session.relay();
        const earlier = await driver.takeOne(queue);
        await session.act('delete', id);
        const again = await driver.takeNew({ id });
        await session.end(earlier, 'done');
        await session.relay();
        session.took((await driver.broker.checkpoints.call(again.lease, [call(again, queue)]))!);
        await session.relay();
        expect(await answers(driver, again)).toEqual({});
        await session.runNext('archive', queue);
        await session.relay();
        expect(JSON.parse((await answers(driver, again))['pay']!)).toEqual({ ok: false, why: 'boom' });
      },
    );

    it('has failed for the first reason', async ({ driver }) => {
      const { session, id, parent } = await calling(driver, 'other');
      await session.relay();
      await session.runNext('archive', 'other');
      await session.relay();
      await session.act('delete', `${id}~pay`, 'other');
      await session.relay();
      await session.keep();
      expect(JSON.parse((await answers(driver, parent))['pay']!)).toEqual({ ok: false, why: 'boom' });
    });

    it('is asked for: one that is gone has failed, one that is there answers when it ends', async ({ driver }) => {
      const parent = await driver.takeNew();
      const session = new LinkSession(driver);
      const [gone, there] = [call(parent, 'other', 'gone'), call(parent, 'other', 'there')];
      await driver.add({ id: there.id, queue: 'other' });
      session.took((await driver.broker.checkpoints.call(parent.lease, [ask(gone), ask(there)]))!);
      await session.relay();
      expect(Object.keys(await answers(driver, parent))).toEqual(['gone']);
      await session.runNext('done', 'other');
      await session.relay();
      expect((await answers(driver, parent))['there']).toBe('{"ok":true}\nresult');
    });

    it('of an id that is there is that one', async ({ driver }) => {
      const parent = await driver.takeNew();
      const session = new LinkSession(driver);
      const one = call(parent, 'other');
      await driver.add({ id: one.id, queue: 'other' });
      session.took((await driver.broker.checkpoints.call(parent.lease, [one]))!);
      await session.relay();
      await session.runNext('done', 'other');
      await session.relay();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
    });

    it('whose lock is held is refused', async ({ driver }) => {
      const parent = await driver.takeNew();
      const session = new LinkSession(driver);
      const one = call(parent, 'other');
      const uniqueKey = 'asynq:{other}:unique:x:1';
      await driver.add({ queue: 'other', uniqueKey }, { uniqueTtl: 60 });
      const wanted = request({ id: one.id, queue: 'other', uniqueKey }, { uniqueTtl: 60 });
      session.took((await driver.broker.checkpoints.call(parent.lease, [{ ...one, request: wanted }]))!);
      await session.relay();
      const why = 'its unique lock is held by another task';
      expect(JSON.parse((await answers(driver, parent))['pay']!)).toEqual({ ok: false, why });
    });

    it('is not created by who has lost the lease, and what it calls answers nobody when the caller is gone', async ({
      driver,
    }) => {
      const parent = await driver.takeNew();
      const one = call(parent, 'other');
      await driver.settle(done(parent));
      expect(await driver.broker.checkpoints.call(parent.lease, [one])).toBeUndefined();
      expect((await driver.queue('other')).pending).toEqual([]);
      const { session, id } = await calling(driver, 'other');
      await session.relay();
      await session.act('delete', id);
      await session.runNext('done', 'other');
      await session.relay();
      expect((await driver.queue()).tasks).toEqual({});
    });

    it.for(['lost', 'twice'])('answers although what goes between the queues is %s', async (how, { driver }) => {
      const session = new LinkSession(driver);
      const parent = await driver.takeNew();
      const one = call(parent, 'other');
      const pass = async (): Promise<void> => (how === 'lost' ? (session.lose(), session.keep()) : session.relay(2));
      session.took((await driver.broker.checkpoints.call(parent.lease, [one]))!);
      await pass();
      await session.runNext('done', 'other');
      await pass();
      expect(await answers(driver, parent)).toEqual(SUCCESS);
      expect((await driver.queue('other')).tasks).toEqual({});
    });
  });
}
