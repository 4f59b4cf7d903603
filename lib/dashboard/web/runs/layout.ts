import { Graph, layout } from '@dagrejs/dagre';

/** A step, as far as its place in the picture goes. */
interface Placeable {
  name: string;
  after: readonly string[];
}

export interface Point {
  x: number;
  y: number;
}

export interface Picture {
  width: number;
  height: number;
  /** The centres of steps, by name. */
  steps: ReadonlyMap<string, Point>;
  lines: readonly { from: string; to: string; points: readonly Point[] }[];
}

export const STEP_WIDTH = 176;
export const STEP_HEIGHT = 52;

/** Layers from left to right: a step is right of all that it waits for. */
export function layOut(graph: readonly Placeable[]): Picture {
  const drawn = new Graph();
  drawn.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 56, marginx: 12, marginy: 12 });
  drawn.setDefaultEdgeLabel(() => ({}));
  const names = new Set(graph.map(({ name }) => name));
  for (const { name } of graph) drawn.setNode(name, { width: STEP_WIDTH, height: STEP_HEIGHT });
  for (const { name, after } of graph) for (const before of after) if (names.has(before)) drawn.setEdge(before, name);
  layout(drawn);
  const { width = 0, height = 0 } = drawn.graph() as { width?: number; height?: number };
  const steps = new Map([...names].map((name) => [name, pointOf(drawn.node(name) as unknown as Point)]));
  const lines = drawn.edges().map(({ v, w }: { v: string; w: string }) => {
    const { points } = drawn.edge(v, w) as unknown as { points: Point[] };
    const [begin, end] = [steps.get(v)!, steps.get(w)!];
    // Between neighbours a curve needs no corner; a longer line goes around the steps in between.
    const corners = points.length > 3 ? points.slice(1, -1).map(pointOf) : [];
    const half = STEP_WIDTH / 2;
    return { from: v, to: w, points: [{ ...begin, x: begin.x + half }, ...corners, { ...end, x: end.x - half }] };
  });
  return { width, height, steps, lines };
}

const pointOf = ({ x, y }: Point): Point => ({ x, y });

/** The path of a line through its points: it leaves and enters steps level, and has no corners. */
export function pathOf([first, ...rest]: readonly Point[]): string {
  if (!first) return '';
  let from = first;
  const curves = rest.map((to) => {
    const middle = (from.x + to.x) / 2;
    const curve = `C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
    from = to;
    return curve;
  });
  return `M${first.x} ${first.y}${curves.join('')}`;
}
