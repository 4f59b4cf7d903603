import { FieldPaths } from './field-paths.js';
import { foldName } from './names.js';
import { callFunction, type RedactedParts, type Redaction, type RedactionRule } from './rules.js';

interface TaskName {
  readonly type: string;
  readonly queue: string;
}

/** What is hidden of tasks of one type and queue. It never depends on their content. */
export class Hidden {
  /** `undefined`: no field. */
  readonly fields: FieldPaths | 'all' | undefined;
  /**
   * Whether a rule of the user hides fields; then undecodable payloads are hidden, too, as nobody
   * knows where these fields are.
   */
  readonly isStrict: boolean;
  private readonly headers: ReadonlySet<string> | 'all';
  /** Whether the text of errors is hidden. */
  readonly errors: boolean;
  /** Whether a rule of the user applies to these tasks. */
  readonly hasRule: boolean;

  /** @param guess hides common names of secrets, besides the rules */
  constructor(rules: readonly RedactedParts[], guess: RedactedParts | undefined) {
    const all = guess ? [...rules, guess] : rules;
    const paths = all.flatMap(({ fields = [] }) => fields);
    this.fields = rules.some(hidesAll) ? 'all' : paths.length > 0 ? new FieldPaths([...new Set(paths)]) : undefined;
    this.isStrict = rules.some((rule) => hidesAll(rule) || rule.fields !== undefined);
    const names = all.flatMap(({ headers = [] }) => headers);
    this.headers = rules.some(hidesAll) || names.includes('*') ? 'all' : new Set(names.map(foldName));
    this.hasRule = rules.length > 0;
    this.errors = all.some(({ errors = 'hide' }) => errors === 'hide');
  }

  hidesHeader(name: string): boolean {
    return this.headers === 'all' || this.headers.has(foldName(name));
  }

  /** Whether this hides every field that the other hides; `false` if that is not obvious. */
  coversFieldsOf({ fields, isStrict }: Hidden): boolean {
    if (this.fields === 'all' || fields === undefined) return true;
    if (fields === 'all' || this.fields === undefined || (isStrict && !this.isStrict)) return false;
    return fields.isWithin(this.fields);
  }
}

const hidesAll = ({ fields, headers }: RedactedParts): boolean => fields === undefined && headers === undefined;

/** Bounds the cache: functions usually return few different results. */
const MAX_CACHED = 200;

/**
 * Combines all rules about what is hidden: those of a connection, of a console, and the default.
 */
export class Redactor {
  private readonly rules: readonly RedactionRule[];
  private readonly functions: readonly Extract<Redaction, Function>[];
  private readonly cache = new Map<string, Hidden>();

  /**
   * @param sources as {@link checkRedaction} returns them; what any of them hides is hidden
   * @param guess hides common names of secrets, besides the rules
   */
  constructor(
    sources: readonly Redaction[],
    private readonly guess?: RedactedParts,
  ) {
    this.rules = sources.flatMap((source) => (typeof source === 'function' ? [] : source));
    this.functions = sources.filter((source) => typeof source === 'function');
  }

  /** Whether the errors of some tasks are hidden. An error that quotes one of another task may then be such a one. */
  get hidesSomeErrors(): boolean {
    const all = this.guess ? [...this.rules, this.guess] : this.rules;
    return this.functions.length > 0 || all.some(({ errors = 'hide' }) => errors === 'hide');
  }

  /** What is hidden of such a task; `undefined`: nothing. */
  of(task: TaskName): Hidden | undefined {
    const parts = this.partsOf(task);
    if (parts.length === 0 && !this.guess) return undefined;
    const key = JSON.stringify(parts);
    const found = this.cache.get(key);
    if (found) return found;
    if (this.cache.size >= MAX_CACHED) this.cache.clear();
    const made = new Hidden(parts, this.guess);
    this.cache.set(key, made);
    return made;
  }

  /** Whether the text of errors of such a task is hidden. */
  hidesErrors(task: TaskName): boolean {
    return this.partsOf(task).some(({ errors = 'hide' }) => errors === 'hide');
  }

  private partsOf(task: TaskName): RedactedParts[] {
    const parts: RedactedParts[] = this.rules.filter(({ type }) => task.type.startsWith(type));
    for (const redact of this.functions) {
      const found = callFunction(redact, task);
      if (found) parts.push(found);
    }
    return parts;
  }
}
