/**
 * Whether a parsed JSON value is longer than so many bytes when it is written out without white space; it looks no further than that.
 * Not by writing it out: that fails for a value of many levels.
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
