import { FieldPaths } from './field-paths.js';
import { foldName } from './names.js';
import { askFunction, type RedactedParts, type Redaction, type RedactionRule } from './rules.js';

interface TaskName {
  readonly type: string;
  readonly queue: string;
}

/** What is hidden of one kind of tasks. It follows from their type and queue alone, never from what is in them. */
export class Hidden {
  /** `undefined`: no field. */
  readonly fields: FieldPaths | 'all' | undefined;
  /** Whether a rule of the user hides fields; then what no decoder can read is hidden, too, as nobody can tell where in it they are. */
  readonly isStrict: boolean;
  private readonly headers: ReadonlySet<string> | 'all';
  /** Whether the text of errors is hidden. */
  readonly errors: boolean;
  /** Whether a rule of the user speaks of these tasks. */
  readonly isStated: boolean;

  /** @param guess hides by name what no rule speaks of */
  constructor(rules: readonly RedactedParts[], guess: RedactedParts | undefined) {
    const all = guess ? [...rules, guess] : rules;
    const paths = all.flatMap(({ fields = [] }) => fields);
    this.fields = rules.some(hidesAll) ? 'all' : paths.length > 0 ? new FieldPaths([...new Set(paths)]) : undefined;
    this.isStrict = rules.some((rule) => hidesAll(rule) || rule.fields !== undefined);
    const names = all.flatMap(({ headers = [] }) => headers);
    this.headers = rules.some(hidesAll) || names.includes('*') ? 'all' : new Set(names.map(foldName));
    this.isStated = rules.length > 0;
    this.errors = all.some(({ errors = 'hide' }) => errors === 'hide');
  }

  hidesHeader(name: string): boolean {
    return this.headers === 'all' || this.headers.has(foldName(name));
  }

  /** Whether it hides each field that those do; `false` where it is not plain to see. */
  coversFieldsOf({ fields, isStrict }: Hidden): boolean {
    if (this.fields === 'all' || fields === undefined) return true;
    if (fields === 'all' || this.fields === undefined || (isStrict && !this.isStrict)) return false;
    return fields.isWithin(this.fields);
  }
}

const hidesAll = ({ fields, headers }: RedactedParts): boolean => fields === undefined && headers === undefined;

/** Answers of functions are few; texts with something in them that varies must not fill the memory. */
const MAX_KNOWN = 200;

/** All that has been said about what is to be hidden: of a connection, of a console, by default. */
export class Redactor {
  private readonly rules: readonly RedactionRule[];
  private readonly functions: readonly Extract<Redaction, Function>[];
  private readonly known = new Map<string, Hidden>();

  /**
   * @param sources as {@link checkRedaction} returned them; what one of them hides is hidden
   * @param guess hides by name what no rule speaks of
   */
  constructor(
    sources: readonly Redaction[],
    private readonly guess?: RedactedParts,
  ) {
    this.rules = sources.flatMap((source) => (typeof source === 'function' ? [] : source));
    this.functions = sources.filter((source) => typeof source === 'function');
  }

  /** What is hidden of such a task; `undefined`: nothing. */
  of(task: TaskName): Hidden | undefined {
    const parts = this.partsOf(task);
    if (parts.length === 0 && !this.guess) return undefined;
    const key = JSON.stringify(parts);
    const found = this.known.get(key);
    if (found) return found;
    if (this.known.size >= MAX_KNOWN) this.known.clear();
    const made = new Hidden(parts, this.guess);
    this.known.set(key, made);
    return made;
  }

  /** Whether the text of errors of such a task is hidden. */
  hidesErrors(task: TaskName): boolean {
    return this.partsOf(task).some(({ errors = 'hide' }) => errors === 'hide');
  }

  private partsOf(task: TaskName): RedactedParts[] {
    const parts: RedactedParts[] = this.rules.filter(({ type }) => task.type.startsWith(type));
    for (const ask of this.functions) {
      const said = askFunction(ask, task);
      if (said) parts.push(said);
    }
    return parts;
  }
}
