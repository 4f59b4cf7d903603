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
    return { from: v, to: w, points: points.map(pointOf) };
  });
  return { width, height, steps, lines };
}

const pointOf = ({ x, y }: Point): Point => ({ x, y });

/** The path of a line through its points, with round corners. */
export function pathOf([first, ...rest]: readonly Point[]): string {
  if (!first) return '';
  const last = rest.at(-1);
  const corners = rest.slice(0, -1).map((point, index) => {
    const next = rest[index + 1]!;
    const isLast = index === rest.length - 2;
    const end = isLast ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${point.x} ${point.y} ${end.x} ${end.y}`;
  });
  return `M${first.x} ${first.y}${corners.length > 0 ? corners.join('') : last ? `L${last.x} ${last.y}` : ''}`;
}
