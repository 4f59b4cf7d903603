import { describe, expect, it } from 'vitest';
import type { ActiveTask } from '../../../lib/server/attempt/active-task.js';
import { HeldTasks } from '../../../lib/server/fetching/held-tasks.js';

const task = (id: string): ActiveTask => ({ id, heldAt: -1, heldNumber: 0 }) as ActiveTask;
const ids = (held: HeldTasks): string[] => Array.from(held, ({ id }) => id);

describe('HeldTasks', () => {
  it('has the tasks in the order in which they were added, whichever go', () => {
    const held = new HeldTasks();
    const tasks = ['a', 'b', 'c', 'd', 'e'].map(task);
    for (const one of tasks) held.add(one);
    held.delete(tasks[0]!);
    held.delete(tasks[3]!);
    expect(ids(held)).toEqual(['b', 'c', 'e']);
    held.add(tasks[0]!);
    expect(ids(held)).toEqual(['b', 'c', 'e', 'a']);
    expect(held.size).toBe(4);
  });

  it('leaves the others alone when a task goes twice, or was never there', () => {
    const held = new HeldTasks();
    const [one, other, stranger] = [task('one'), task('other'), task('stranger')];
    held.add(one);
    held.add(other);
    for (let n = 0; n < 2; n++) held.delete(one);
    held.delete(stranger);
    expect(ids(held)).toEqual(['other']);
    expect([one, other, stranger].map((each) => held.has(each))).toEqual([false, true, false]);
  });

  it('may be changed while somebody goes through it', () => {
    const held = new HeldTasks();
    for (const id of ['a', 'b', 'c']) held.add(task(id));
    const seen: string[] = [];
    for (const one of held) {
      seen.push(one.id);
      held.delete(one);
    }
    expect(seen).toEqual(['a', 'b', 'c']);
    expect(held.size).toBe(0);
  });

  it('holds what a set would, after any history', () => {
    const held = new HeldTasks();
    const model = new Set<ActiveTask>();
    const tasks = Array.from({ length: 20 }, (_, n) => task(`${n}`));
    for (let step = 0, seed = 7; step < 2_000; step++) {
      seed = (seed * 48_271) % 2_147_483_647;
      const one = tasks[seed % tasks.length]!;
      if (model.has(one)) {
        held.delete(one);
        model.delete(one);
      } else {
        held.add(one);
        model.add(one);
      }
      expect(ids(held)).toEqual(Array.from(model, ({ id }) => id));
    }
  });
});
