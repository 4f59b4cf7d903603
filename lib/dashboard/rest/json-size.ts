/**
 * Whether a parsed JSON value takes more than `maxBytes` without white space. Stops at the limit,
 * and does not serialize, which would fail for deeply nested values.
 */
export function sizeExceeds(value: unknown, maxBytes: number): boolean {
  const waiting: unknown[] = [value];
  let bytes = 0;
  while (waiting.length > 0 && bytes <= maxBytes) {
    const next = waiting.pop();
    if (typeof next === 'string') bytes += Buffer.byteLength(next) + 2;
    else if (Array.isArray(next)) {
      bytes += next.length + 1;
      for (const item of next) waiting.push(item);
    } else if (typeof next === 'object' && next !== null) {
      bytes += 2;
      for (const [name, item] of Object.entries(next)) {
        bytes += Buffer.byteLength(name) + 4;
        waiting.push(item);
      }
    } else if (next !== undefined) bytes += String(next).length;
  }
  return bytes > maxBytes;
}
