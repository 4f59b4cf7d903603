import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { RunSession, step } from '../run-session.js';

const OTHER = { message: { queue: 'other' } };

export function exerciseGrowth(it: DriverTest): void {
  describe('a run that grows', () => {
    it('runs new steps after those that are there, at once after those that have ended', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a'), step('b', { after: ['a'] })]);
      await session.finish('a');
      expect(
        await session.grow(step('c', { after: ['a'] }), step('d', { after: ['b', 'c'], ...OTHER }), step('e', OTHER)),
      ).toBe('added');
      expect(await session.states()).toEqual(['running', 'a:succeeded b:ready c:ready d:waiting e:ready']);
      expect((await session.step('d')).after).toEqual(['b', 'c']);
      await session.finish('b', 'c', 'd', 'e');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });

    it('decides at once about steps after failed ones, in any order of the new steps', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a'), step('o', { optional: true }), step('x')]);
      await session.fail('a');
      await session.fail('o');
      const added = await session.grow(
        step('e', { after: ['c', 'b'], onFailure: 'run' }),
        step('c', { after: ['b'] }),
        step('b', { after: ['a', 'o'] }),
        step('d', { after: ['o'] }),
        step('w', { after: ['a'], onFailure: 'wait' }),
      );
      expect(added).toBe('added');
      const states = 'a:failed o:failed x:ready e:ready c:cancelled b:cancelled d:ready w:waiting';
      expect(await session.states()).toEqual(['running', states]);
      await session.act('run', 'wf:1~a');
      await session.finish('a', 'b', 'c', 'd', 'e', 'w', 'x');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });

    it('takes all new steps or none', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a')]);
      expect(await session.grow(step('b'), step('c', { after: ['x'] }))).toBe('unknown');
      expect(await session.grow(step('b'), step('a'))).toBe('taken');
      expect(await session.grow(step('b'), step('b'))).toBe('taken');
      expect(await session.grow()).toBe('added');
      expect(await session.states()).toEqual(['running', 'a:ready']);
      await session.finish('a');
      expect(await session.grow(step('b'))).toBe('ended');
      expect((await session.workflows.grow('default', 'none', [step('b')])).status).toBe('missing');
      expect(await driver.take(5)).toEqual([]);
      await session.expectNothingLeft();
    });

    it('takes no steps that wait for each other in a circle', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a')]);
      expect(await session.grow(step('s', { after: ['s'] }))).toBe('unknown');
      const circle = [step('b', { after: ['a', 'd'] }), step('c', { after: ['b'] }), step('d', { after: ['c'] })];
      expect(await session.grow(step('first'), ...circle, step('last', { after: ['d'] }))).toBe('unknown');
      expect(await session.states()).toEqual(['running', 'a:ready']);
      expect(await session.grow(step('s', { after: ['a'] }))).toBe('added');
      await session.finish('a', 's');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    });

    it('grows in the handler of its last step, again and again', async ({ driver }) => {
      const session = new RunSession(driver);
      await session.start([step('s0')]);
      for (let n = 0; n < 30; n++) {
        await session.claim(`s${n}`);
        const where = n % 2 === 0 ? OTHER : {};
        expect(
          await session.grow(step(`s${n + 1}`, { after: n % 3 === 0 ? ['s0', `s${n}`] : [`s${n}`], ...where })),
        ).toBe('added');
        await session.finish(`s${n}`);
      }
      await session.finish('s30');
      expect(await session.stored()).toMatchObject({ state: 'succeeded', steps: 31 });
      await session.expectNothingLeft();
    });
  });
}
