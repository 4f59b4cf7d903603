import type { Method, Route } from './route.js';

interface Segment {
  /** Undefined: a parameter. */
  readonly literal: string | undefined;
  readonly name: string;
  /** The text after the last colon; undefined: colons are part of the segment. */
  readonly verb: string | undefined;
}

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

const SEGMENT = /^(?:\{(\w+)\}|([\w.]+))(?::(\w+))?$/;

function parsePattern(path: string): Segment[] {
  return path.split('/').map((segment) => {
    const [, name = '', literal, verb] = SEGMENT.exec(segment)!;
    return { literal, name, verb };
  });
}

/**
 * Matches paths to routes. Names of queues and tasks may contain colons and slashes, and Express
 * and Fastify treat colons differently. So they pass whole, decoded segments, and the verb is the
 * text after the last colon.
 */
export class Router {
  private readonly patterns: readonly { readonly route: Route; readonly segments: readonly Segment[] }[];

  constructor(readonly routes: readonly Route[]) {
    this.patterns = routes.map((route) => ({ route, segments: parsePattern(route.path) }));
  }

  /** `undefined`: no route has this path and method. */
  match(method: Method, path: readonly string[]): Match | undefined {
    for (const { route, segments } of this.patterns) {
      if (route.method !== method || segments.length !== path.length) continue;
      const params = readParams(segments, path);
      if (params) return { route, params };
    }
    return undefined;
  }

  /** Whether any method has a route with this path. */
  knows(path: readonly string[]): boolean {
    return this.patterns.some(({ segments }) => segments.length === path.length && readParams(segments, path));
  }
}

function readParams(segments: readonly Segment[], path: readonly string[]): Record<string, string> | undefined {
  // Without a prototype: a parameter may have any name.
  const params = Object.create(null) as Record<string, string>;
  for (const [index, segment] of segments.entries()) {
    const text = withoutVerb(path[index]!, segment.verb);
    if (text === undefined || text === '') return undefined;
    if (segment.literal === undefined) params[segment.name] = text;
    else if (segment.literal !== text) return undefined;
  }
  return params;
}

function withoutVerb(text: string, verb: string | undefined): string | undefined {
  if (verb === undefined) return text;
  const colon = text.lastIndexOf(':');
  return colon > 0 && text.slice(colon + 1) === verb ? text.slice(0, colon) : undefined;
}
