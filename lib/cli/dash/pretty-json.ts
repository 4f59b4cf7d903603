/** Deeper levels are not indented further: their lines would be mostly spaces. */
const MAX_INDENTED_LEVELS = 30;

/**
 * JSON with one line per value; `undefined` unless it is an object or an array. Only white space changes: numbers too large for
 * JavaScript and duplicate names stay as they are.
 */
export function prettyJson(text: string): string | undefined {
  if (!isStructure(text)) return undefined;
  let pretty = '';
  let depth = 0;
  let last = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g)) {
    const opened = last === '{' || last === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth--;
    if (opened !== closes || last === ',') pretty += lineBreak(depth);
    pretty += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth++;
    last = token;
  }
  return pretty;
}

const lineBreak = (depth: number): string => `\n${'  '.repeat(Math.min(depth, MAX_INDENTED_LEVELS))}`;

function isStructure(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null;
  } catch {
    return false;
  }
}
