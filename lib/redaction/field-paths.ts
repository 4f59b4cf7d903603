import { anyOfNames, foldName } from './names.js';

/** Ends each path in the list of segments. */
const END = Symbol('end of a path');
type Segment = string | typeof END;

/** Rules are few, but the keys of a payload are anybody's: beyond this, places are worked out anew each time. */
const MAX_KNOWN_PLACES = 1_000;

/** How far the paths have been followed into a value: the segments that may come next, each once. */
export interface FieldPlace {
  /** Whether a path ends here: what stands here is hidden. */
  readonly isHidden: boolean;
  /** Below this key; `undefined` when no path leads on. */
  at(key: string): FieldPlace | undefined;
  /** A member of a list: a path that has no `*` for the list means each of them. */
  member(index: number): FieldPlace | undefined;
}

/**
 * Paths of fields, followed all at once. A place is a set of segments, so that a step costs no more than the paths are long, whatever
 * the value looks like; places are remembered, so that most steps are one look-up.
 */
export class FieldPaths {
  private readonly segments: readonly Segment[];
  /** All names in the paths; every other key is followed like any unknown one. */
  private readonly names: ReadonlySet<string>;
  private readonly known = new Map<string, Place>();
  readonly start: FieldPlace;
  private lastNames: RegExp | undefined;

  constructor(readonly paths: readonly string[]) {
    const split = paths.map((path) => path.split('.').map(foldName));
    this.segments = split.flatMap((path) => [...path, END]);
    this.names = new Set(split.flat());
    const starts = this.segments.flatMap((_, index) =>
      index === 0 || this.segments[index - 1] === END ? [index] : [],
    );
    this.start = this.place(new Set(starts))!;
  }

  /** Whether everything these paths hide of a value is also hidden by those; `false` where it is not plain to see. */
  isWithin(others: FieldPaths): boolean {
    const folded = new Set(others.paths.map(foldPath));
    return this.paths.every((path) => folded.has(foldPath(path)));
  }

  /** Whether the last name of a path occurs in a text: where it does not, nothing is hidden in JSON of that text. */
  mayBeIn(text: string): boolean {
    this.lastNames ??= this.makeLastNames();
    return this.lastNames.test(text);
  }

  private makeLastNames(): RegExp {
    const last = this.paths.map((path) => foldPath(path).split('.').at(-1)!);
    return last.some((name) => name === '*' || name === '**' || /^\d+$/.test(name)) ? /(?:)/ : anyOfNames(last);
  }

  step(from: readonly number[], key: string, stay: boolean): Place | undefined {
    const next = new Set<number>(stay ? from : []);
    for (const index of from) this.follow(index, key, next);
    return this.place(next);
  }

  /** A key in the one spelling that is looked up; keys that no path names are one and the same. */
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

  private place(indices: ReadonlySet<number>): Place | undefined {
    if (indices.size === 0) return undefined;
    const sorted = [...indices].sort((a, b) => a - b);
    const id = sorted.join();
    const found = this.known.get(id);
    if (found) return found;
    const isHidden = sorted.some((index) => this.segments[index] === END);
    const made = new Place(this, sorted, isHidden);
    if (!this.knowsEnough) this.known.set(id, made);
    return made;
  }

  get knowsEnough(): boolean {
    return this.known.size >= MAX_KNOWN_PLACES;
  }
}

class Place implements FieldPlace {
  private readonly keys = new Map<string, Place | undefined>();
  private readonly members = new Map<string, Place | undefined>();

  constructor(
    private readonly paths: FieldPaths,
    private readonly indices: readonly number[],
    readonly isHidden: boolean,
  ) {}

  at(key: string): FieldPlace | undefined {
    return this.step(this.keys, key, false);
  }

  member(index: number): FieldPlace | undefined {
    return this.step(this.members, String(index), true);
  }

  private step(known: Map<string, Place | undefined>, key: string, stay: boolean): Place | undefined {
    const name = this.paths.nameOf(key);
    if (known.has(name)) return known.get(name);
    const next = this.paths.step(this.indices, name, stay);
    if (!this.paths.knowsEnough) known.set(name, next);
    return next;
  }
}

const foldPath = (path: string): string => path.split('.').map(foldName).join('.');
