import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinkedQueue } from '../../lib/broker/memory/linked-queue.js';
import { SortedSet, compareIds } from '../../lib/broker/sorted-set.js';

const ids = fc.integer({ min: 0, max: 60 }).map((number) => `n${number}`);

describe('compareIds', () => {
  it('orders well-formed text by its UTF-8 bytes', () => {
    const text = fc.string({ unit: 'binary', maxLength: 5 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareIds(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
    expect(compareIds('\u{1f389}', '\uffee')).toBeGreaterThan(0);
  });
});

describe('SortedSet', () => {
  const step = fc.oneof(
    fc.record({ id: ids, score: fc.integer({ min: 0, max: 9 }) }),
    fc.record({ id: ids, score: fc.constant(undefined) }),
  );

  it('equals a sorted list of the same entries at every step', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.nat(9), fc.nat(20), (steps, highest, limit) => {
        const set = new SortedSet();
        const model = new Map<string, number>();
        for (const { id, score } of steps) {
          if (score === undefined) expect(set.delete(id)).toBe(model.delete(id));
          else {
            set.set(id, score);
            model.set(id, score);
          }
        }
        const sorted = [...model]
          .sort(([a, x], [b, y]) => x - y || compareIds(a, b))
          .map(([id, score]) => ({ id, score }));
        expect([...set]).toEqual(sorted);
        expect(set.size).toBe(model.size);
        expect(set.first()).toEqual(sorted[0]);
        expect(set.upTo(highest, limit)).toEqual(sorted.filter(({ score }) => score <= highest).slice(0, limit));
        for (const [id, score] of model) expect(set.score(id)).toBe(score);
      }),
    );
  });

  it('keeps its order while thousands of entries are added and removed', () => {
    const set = new SortedSet();
    const count = 5000;
    const place = (index: number): number => (index * 3571) % count;
    for (let index = 0; index < count; index++) set.set(`n${place(index)}`, Math.floor(place(index) / 7));
    for (let index = 0; index < count; index += 3) set.delete(`n${place(index)}`);
    const left = [...set];
    const sorted = [...left].sort((a, b) => a.score - b.score || compareIds(a.id, b.id));
    expect(left).toHaveLength(count - Math.ceil(count / 3));
    expect(left).toEqual(sorted);
  });
});

describe('LinkedQueue', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constantFrom('back' as const, 'front' as const, 'remove' as const), id: ids }),
    fc.record({ kind: fc.constant('pop' as const), id: fc.constant('') }),
  );

  it('equals an array of the same ids at every step', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const queue = new LinkedQueue();
        const model: string[] = [];
        for (const { kind, id } of steps) {
          if (kind === 'pop') expect(queue.popFront()).toBe(model.shift());
          else if (kind === 'remove') {
            const at = model.indexOf(id);
            expect(queue.remove(id)).toBe(at >= 0);
            if (at >= 0) model.splice(at, 1);
          } else if (queue.has(id)) expect(model).toContain(id);
          else if (kind === 'back') {
            queue.pushBack(id);
            model.push(id);
          } else {
            queue.pushFront(id);
            model.unshift(id);
          }
          expect([...queue]).toEqual(model);
          expect(queue.size).toBe(model.length);
        }
      }),
    );
  });

  it('returns whether it changed', () => {
    const queue = new LinkedQueue();
    queue.pushBack('a');
    const { changes } = queue;
    expect(queue.remove('b')).toBe(false);
    expect(queue.changes).toBe(changes);
    expect(queue.popFront()).toBe('a');
    expect(queue.changes).not.toBe(changes);
  });
});
