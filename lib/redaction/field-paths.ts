import { anyOfNames, foldName } from './names.js';

/** The end of each path in the list of segments. */
const END = Symbol('end of a path');
type Segment = string | typeof END;

/** Bounds the cache of positions: the rules are few, but the keys of payloads may be any. */
const MAX_CACHED_POSITIONS = 1_000;

/** A position in a value: the segments of paths that may come next. */
export interface FieldPosition {
  /** Whether a path ends here: then the value here is hidden. */
  readonly isHidden: boolean;
  /** The position below this key; `undefined` when no path continues. */
  at(key: string): FieldPosition | undefined;
  /** A member of a list; a path without `*` for the list applies to each member. */
  member(index: number): FieldPosition | undefined;
}

/**
 * Follows all paths of fields at once. A position is a set of segments, so that a step costs no
 * more than the paths are long, whatever the value is; positions are cached, so that most steps are
 * one look-up.
 */
export class FieldPaths {
  private readonly segments: readonly Segment[];
  /** All names in the paths; all other keys are equal. */
  private readonly names: ReadonlySet<string>;
  private readonly cache = new Map<string, Position>();
  readonly start: FieldPosition;
  private lastNames: RegExp | undefined;

  constructor(readonly paths: readonly string[]) {
    const split = paths.map((path) => path.split('.').map(foldName));
    this.segments = split.flatMap((path) => [...path, END]);
    this.names = new Set(split.flat());
    const starts = this.segments.flatMap((_, index) =>
      index === 0 || this.segments[index - 1] === END ? [index] : [],
    );
    this.start = this.positionAt(new Set(starts))!;
  }

  /** Whether the others hide everything that these paths hide; `false` if that is not obvious. */
  isWithin(others: FieldPaths): boolean {
    const folded = new Set(others.paths.map(foldPath));
    return this.paths.every((path) => folded.has(foldPath(path)));
  }

  /**
   * Whether the last name of a path occurs in a text; if not, nothing in JSON of that text is
   * hidden.
   */
  mayBeIn(text: string): boolean {
    this.lastNames ??= this.makeLastNames();
    return this.lastNames.test(text);
  }

  private makeLastNames(): RegExp {
    const last = this.paths.map((path) => foldPath(path).split('.').at(-1)!);
    return last.some((name) => name === '*' || name === '**' || /^\d+$/.test(name)) ? /(?:)/ : anyOfNames(last);
  }

  step(from: readonly number[], key: string, stay: boolean): Position | undefined {
    const next = new Set<number>(stay ? from : []);
    for (const index of from) this.follow(index, key, next);
    return this.positionAt(next);
  }

  /** A key in its folded spelling; empty for keys that no path names. */
  nameOf(key: string): string {
    const name = foldName(key);
    return this.names.has(name) ? name : '';
  }

  private follow(index: number, key: string, next: Set<number>): void {
    const segment = this.segments[index];
    if (segment === '**') {
      if (this.segments[index + 1] === END) next.add(index + 1);
      else {
        next.add(index);
        this.follow(index + 1, key, next);
      }
    } else if (segment === '*' || segment === key) next.add(index + 1);
  }

  private positionAt(indices: ReadonlySet<number>): Position | undefined {
    if (indices.size === 0) return undefined;
    const sorted = [...indices].sort((a, b) => a - b);
    const id = sorted.join();
    const found = this.cache.get(id);
    if (found) return found;
    const isHidden = sorted.some((index) => this.segments[index] === END);
    const made = new Position(this, sorted, isHidden);
    if (!this.isCacheFull) this.cache.set(id, made);
    return made;
  }

  get isCacheFull(): boolean {
    return this.cache.size >= MAX_CACHED_POSITIONS;
  }
}

class Position implements FieldPosition {
  private readonly keys = new Map<string, Position | undefined>();
  private readonly members = new Map<string, Position | undefined>();

  constructor(
    private readonly paths: FieldPaths,
    private readonly indices: readonly number[],
    readonly isHidden: boolean,
  ) {}

  at(key: string): FieldPosition | undefined {
    return this.step(this.keys, key, false);
  }

  member(index: number): FieldPosition | undefined {
    return this.step(this.members, String(index), true);
  }

  private step(cache: Map<string, Position | undefined>, key: string, stay: boolean): Position | undefined {
    const name = this.paths.nameOf(key);
    if (cache.has(name)) return cache.get(name);
    const next = this.paths.step(this.indices, name, stay);
    if (!this.paths.isCacheFull) cache.set(name, next);
    return next;
  }
}

const foldPath = (path: string): string => path.split('.').map(foldName).join('.');
