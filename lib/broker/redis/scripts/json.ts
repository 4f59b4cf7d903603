/**
 * JSON that a script has stored: an object or a list, as `otherwise` is. What somebody has damaged
 * reads as `otherwise`, so that one record does not hide the others.
 */
export function readJson<T extends object>(text: string, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(text);
    const isSame = typeof value === 'object' && value !== null && Array.isArray(value) === Array.isArray(otherwise);
    return isSame ? (value as T) : otherwise;
  } catch {
    return otherwise;
  }
}
