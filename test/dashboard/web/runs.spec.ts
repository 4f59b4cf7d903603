import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layOut, pathOf, STEP_HEIGHT, STEP_WIDTH } from '../../../lib/dashboard/web/runs/layout.js';
import { fit, pan, zoom } from '../../../lib/dashboard/web/runs/view.js';

/** Graphs without a cycle: each step waits for some of those before it. */
const graphs = fc.array(fc.array(fc.nat({ max: 19 }), { maxLength: 4 }), { minLength: 1, maxLength: 20 }).map((picks) =>
  picks.map((before, index) => ({
    name: `s${index}`,
    after: [...new Set(before.filter((one) => one < index))].map((one) => `s${one}`),
  })),
);

describe('the picture of a run', () => {
  it('has every step right of what it waits for, none upon another, and a line for each wait', () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const { steps, lines, width, height } = layOut(graph);
        for (const { name, after } of graph) {
          const { x, y } = steps.get(name)!;
          expect(x).toBeGreaterThanOrEqual(STEP_WIDTH / 2);
          expect(x).toBeLessThanOrEqual(width - STEP_WIDTH / 2);
          expect(y).toBeLessThanOrEqual(height - STEP_HEIGHT / 2);
          for (const before of after) expect(steps.get(before)!.x).toBeLessThan(x);
        }
        const places = [...steps.values()];
        for (const [index, a] of places.entries()) {
          const upon = places
            .slice(index + 1)
            .filter((b) => Math.abs(a.x - b.x) < STEP_WIDTH && Math.abs(a.y - b.y) < STEP_HEIGHT);
          expect(upon).toEqual([]);
        }
        expect(lines).toHaveLength(graph.reduce((sum, { after }) => sum + after.length, 0));
        for (const { from, to, points } of lines) {
          const [begin, end] = [points[0]!, points.at(-1)!];
          expect(begin).toEqual({ x: steps.get(from)!.x + STEP_WIDTH / 2, y: steps.get(from)!.y });
          expect(end).toEqual({ x: steps.get(to)!.x - STEP_WIDTH / 2, y: steps.get(to)!.y });
        }
      }),
      { numRuns: 50 },
    );
  });

  it('leaves out waits for steps that it does not have', () => {
    expect(layOut([{ name: 'a', after: ['gone'] }]).lines).toEqual([]);
  });

  it('draws lines through their points', () => {
    const points = [
      { x: 0, y: 0 },
      { x: 10, y: 5 },
      { x: 20, y: 5 },
    ];
    expect(pathOf(points)).toBe('M0 0C5 0 5 5 10 5C15 5 15 5 20 5');
    expect(pathOf(points.slice(0, 1))).toBe('M0 0');
    expect(pathOf([])).toBe('');
  });
});

describe('the view of a picture', () => {
  const screen = { width: 800, height: 400 };

  it('begins with all of it, in the middle, and never enlarged', () => {
    expect(fit({ width: 400, height: 200 }, screen)).toEqual({ x: -200, y: -100, scale: 1 });
    expect(fit({ width: 1600, height: 200 }, screen)).toEqual({ x: 0, y: -300, scale: 0.5 });
  });

  it('zooms around a point, within bounds, and moves by pixels of the screen', () => {
    const view = { x: 10, y: 20, scale: 1 };
    const at = { x: 100, y: 50 };
    const larger = zoom(view, 2, at);
    expect(larger.x + at.x / larger.scale).toBe(view.x + at.x / view.scale);
    expect(larger.y + at.y / larger.scale).toBe(view.y + at.y / view.scale);
    expect(zoom(view, 1_000, at).scale).toBe(2.5);
    expect(zoom(view, 0.0001, at).scale).toBe(0.05);
    expect(pan({ x: 0, y: 0, scale: 2 }, { x: 10, y: -4 })).toEqual({ x: -5, y: 2, scale: 2 });
  });
});
