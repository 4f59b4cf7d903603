/** A chain of causes may be a circle. */
const MAX_CAUSES = 16;

/**
 * The error itself, or the first in its `cause` chain, that has this code. Compares codes, not
 * classes: an application may load two copies of this package.
 */
export function findCode(error: unknown, code: string): object | undefined {
  try {
    let current = error;
    for (let depth = 0; depth < MAX_CAUSES && typeof current === 'object' && current !== null; depth++) {
      if ((current as { code?: unknown }).code === code) return current;
      current = (current as { cause?: unknown }).cause;
    }
  } catch {
    // a getter that throws: not one of ours
  }
  return undefined;
}

/** Whether the error, or one in its `cause` chain, has this code. */
export const hasCode = (error: unknown, code: string): boolean => findCode(error, code) !== undefined;
