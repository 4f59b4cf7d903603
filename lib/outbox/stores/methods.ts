/** Whether a value is an object, or a function, with these methods. */
export const hasMethods = (value: unknown, names: readonly string[]): boolean =>
  (typeof value === 'object' || typeof value === 'function') &&
  value !== null &&
  names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
