/** JSON as it was written: numbers keep their digits, objects their order and repeated keys. */
export type JsonNode =
  | { kind: 'string'; value: string }
  | { kind: 'number'; text: string }
  | { kind: 'literal'; text: 'true' | 'false' | 'null' }
  | { kind: 'array'; items: JsonNode[] }
  | { kind: 'object'; entries: [string, JsonNode][] };

/**
 * Deeper values are shown as text: a tree of that depth is unreadable, and the browser's stack is
 * limited.
 */
const MAX_DEPTH = 200;

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null)|([[\]{}:,]))/y;

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  read(depth = 0): JsonNode {
    if (depth > MAX_DEPTH) throw new RangeError('too deep');
    const [, string, number, literal, mark] = this.next();
    if (string !== undefined) return { kind: 'string', value: JSON.parse(string) as string };
    if (number !== undefined) return { kind: 'number', text: number };
    if (literal !== undefined) return { kind: 'literal', text: literal as 'null' };
    return mark === '[' ? this.array(depth) : this.object(depth);
  }

  private array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    if (this.skips(']')) return { kind: 'array', items };
    do items.push(this.read(depth + 1));
    while (this.next()[4] === ',');
    return { kind: 'array', items };
  }

  private object(depth: number): JsonNode {
    const entries: [string, JsonNode][] = [];
    if (this.skips('}')) return { kind: 'object', entries };
    do {
      const key = JSON.parse(this.next()[1] ?? '""') as string;
      this.next();
      entries.push([key, this.read(depth + 1)]);
    } while (this.next()[4] === ',');
    return { kind: 'object', entries };
  }

  private next(): RegExpExecArray {
    TOKEN.lastIndex = this.at;
    const match = TOKEN.exec(this.text);
    if (!match) throw new SyntaxError(`no JSON at ${this.at}`);
    this.at = TOKEN.lastIndex;
    return match;
  }

  private skips(mark: string): boolean {
    const before = this.at;
    if (this.next()[4] === mark) return true;
    this.at = before;
    return false;
  }
}

/** The tree of a JSON text; undefined for invalid JSON, or when it is too deep. */
export function parseJson(text: string): JsonNode | undefined {
  try {
    // JSON.parse validates the text, so the reader does not have to.
    JSON.parse(text);
    return new Reader(text).read();
  } catch {
    return undefined;
  }
}

/** The node at a path of keys. */
export function nodeAt(node: JsonNode | undefined, ...path: string[]): JsonNode | undefined {
  let current = node;
  for (const key of path) {
    if (current?.kind !== 'object') return undefined;
    current = current.entries.findLast(([name]) => name === key)?.[1];
  }
  return current;
}

/** Indented by two spaces, every number as it was written. */
export function printJson(node: JsonNode, indent = ''): string {
  const inner = `${indent}  `;
  switch (node.kind) {
    case 'string':
      return JSON.stringify(node.value);
    case 'array':
      return node.items.length === 0
        ? '[]'
        : `[\n${node.items.map((item) => inner + printJson(item, inner)).join(',\n')}\n${indent}]`;
    case 'object':
      return node.entries.length === 0
        ? '{}'
        : `{\n${node.entries.map(([key, value]) => `${inner}${JSON.stringify(key)}: ${printJson(value, inner)}`).join(',\n')}\n${indent}}`;
    default:
      return node.text;
  }
}
