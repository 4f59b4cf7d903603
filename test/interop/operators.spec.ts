import { beforeAll, expect, it } from 'vitest';
import { WAITING_GROUP } from '../../lib/wire/keys.js';
import { asynqCommand, asynqmon, type Listed, type Operator } from '../support/go-operators.js';
import { describeWithGo } from '../support/go.js';
import { type Busy, BUSY, BusyQueue, LINKED_OF_EACH } from './busy.js';
import { useInterop } from './fixture.js';

const GONE_WELL = 'succeeded done done';
const FAILED = 'failed archived archived';
const ends = (fallback: string, some: Partial<Record<Busy, string>> = {}): Record<Busy, string> => ({
  ...(Object.fromEntries(BUSY.map((state) => [state, fallback])) as Record<Busy, string>),
  ...some,
});

/*
 * A queue of linked tasks in every state, between a Go server and ours. Whatever people do to it with asynq's tools, every wait
 * has an end, and what was cancelled is revived when they run the tasks again. Each test does the same with both tools, at once.
 */
describeWithGo("asynq's command and asynqmon on a busy queue", () => {
  const interop = useInterop();
  const tools = {} as Record<'command' | 'asynqmon', Operator>;
  beforeAll(async () => {
    tools.command = asynqCommand(interop.go);
    tools.asynqmon = await asynqmon(interop.go);
  });

  const withBoth = (test: (busy: BusyQueue, tool: Operator) => Promise<void>): Promise<unknown> =>
    Promise.all(Object.values(tools).map(async (tool) => test(await BusyQueue.create(interop), tool)));
  const waiting = (queue: string): Listed => ({ queue, state: 'aggregating', group: WAITING_GROUP });

  it('archive all: what waits fails, and is revived when all are run', () =>
    withBoth(async (busy, tool) => {
      const { work: queue } = busy;
      for (const state of ['pending', 'scheduled', 'retry'] as const)
        expect(await tool.actOnAll('archive', { queue, state })).toBe(LINKED_OF_EACH);
      expect(await tool.actOnAll('archive', waiting(queue))).toBe(3);
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(FAILED, { active: 'running waiting waiting' }));
        expect(await busy.counts()).toBe('closed 5 1 0 4');
        expect(await busy.chain()).toEqual(['archived', 'archived', 'archived']);
      });
      await busy.release();
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(FAILED, { active: GONE_WELL }));
        expect(await busy.counts()).toBe('completed 5 0 1 4');
      });
      await busy.recover();
      expect(await tool.actOnAll('run', { queue, state: 'archived' })).toBe(4 * LINKED_OF_EACH + 3);
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(GONE_WELL));
        expect(await busy.counts()).toBe('succeeded 5 0 5 0');
        expect(await busy.chain()).toEqual(['done', 'done', 'done']);
        expect(busy.callbacks()).toEqual(['complete', 'death', 'success']);
      });
      await busy.expectNothingLeft();
    }));

  it('run all: nothing waits any more', () =>
    withBoth(async (busy, tool) => {
      const { work: queue } = busy;
      await busy.recover();
      await busy.release();
      for (const state of ['scheduled', 'retry', 'archived'] as const) await tool.actOnAll('run', { queue, state });
      expect(await tool.actOnAll('run', waiting(queue))).toBe(3);
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(GONE_WELL));
        expect(await busy.counts()).toBe('succeeded 5 0 5 0');
        expect(await busy.chain()).toEqual(['done', 'done', 'done']);
        // Whether the keeper saw that some had died is a matter of luck.
        expect(busy.callbacks().filter((type) => type !== 'death')).toEqual(['complete', 'success']);
      });
      await busy.expectNothingLeft();
    }));

  it('delete all: what waits fails', () =>
    withBoth(async (busy, tool) => {
      const { work: queue } = busy;
      for (const state of ['pending', 'scheduled', 'retry', 'archived'] as const)
        expect(await tool.actOnAll('delete', { queue, state })).toBe(LINKED_OF_EACH);
      expect(await tool.actOnAll('delete', waiting(queue))).toBe(3);
      await busy.release();
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(FAILED, { active: GONE_WELL }));
        expect(await busy.counts()).toBe('completed 5 0 1 4');
        expect(await busy.chain()).toEqual(['archived', 'archived', 'archived']);
        expect(busy.callbacks()).toEqual(['complete', 'death']);
      });
      await busy.expectNothingLeft();
    }));

  it('run, archive and delete one by one: each wait has the end of its task', () =>
    withBoth(async (busy, tool) => {
      const { work: queue } = busy;
      await tool.act('delete', { queue, state: 'pending' }, await busy.ids('pending'));
      await tool.act('archive', { queue, state: 'scheduled' }, await busy.ids('scheduled'));
      await tool.act('run', { queue, state: 'retry' }, await busy.ids('retry'));
      const [run, archived, deleted] = busy.waiting.map(({ id }) => id);
      await tool.act('run', waiting(queue), [run!]);
      await tool.act('archive', waiting(queue), [archived!]);
      await tool.act('delete', waiting(queue), [deleted!]);
      await busy.recover();
      await busy.release();
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(FAILED, { active: GONE_WELL, retry: GONE_WELL }));
        expect(await busy.counts()).toBe('completed 5 0 2 3');
        expect(await busy.chain()).toEqual(['done', 'archived', 'archived']);
      });
    }));

  it('remove the queue: its tasks have failed, and what waits in it stays, to be seen', () =>
    withBoth(async (busy, tool) => {
      const { go } = interop;
      const { work: queue } = busy;
      await expect(tool.removeQueue(queue, false)).rejects.toThrow();
      await busy.release();
      await interop.until(async () => expect((await go.queueInfo(queue)).active).toBe(0));
      await asynqCommand(go).removeQueue(queue, true); // asynqmon does not force
      await interop.until(async () => {
        expect(await busy.ends()).toEqual(ends(FAILED, { active: GONE_WELL }));
        expect(await busy.counts()).toBe('completed 5 0 1 4');
      });
      expect(await busy.chain()).toEqual(['waiting', 'waiting', 'waiting']);
      // Keepers list it again within a minute, or at their first pass.
      await busy.keep();
      expect(await go.list(queue, 'aggregating', WAITING_GROUP)).toHaveLength(3);
      await busy.recover();
      for (const { prerequisite } of busy.waiting) await go.runTask(busy.home, prerequisite);
      await interop.until(async () => expect(await busy.chain()).toEqual(['done', 'done', 'done']));
    }));
});
