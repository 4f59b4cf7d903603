import { InvalidStepError } from '../../errors.js';
import { requirePayloadSize } from '../../task/payload-size.js';

/** A value that JSON does not keep, and where it is. */
interface Misfit {
  readonly path: string;
  readonly what: string;
}

/**
 * The JSON of what a step has brought; empty for `undefined`.
 *
 * @throws InvalidStepError when JSON would make something else of it, or it is too large
 */
export function encodeStepResult(value: unknown, step: string, maxBytes: number): string {
  requireJson(value, `the result of step "${step}"`);
  const text = value === undefined ? '' : JSON.stringify(value);
  try {
    return requirePayloadSize(text, maxBytes, `the result of step "${step}"`);
  } catch (error) {
    throw new InvalidStepError((error as Error).message);
  }
}

/** @throws InvalidStepError when JSON would make something else of it. @param what as in `the result of step "row"` */
export function requireJson(value: unknown, what: string): void {
  const misfit = findMisfit(value, '', new Set());
  if (!misfit) return;
  const where = misfit.path === '' ? '' : ` at ${misfit.path.slice(1)}`;
  throw new InvalidStepError(
    `${what} cannot be stored: it has ${misfit.what}${where}, which JSON does not keep. ` +
      'Return plain objects, arrays, texts, numbers, booleans and null',
  );
}

function findMisfit(value: unknown, path: string, above: Set<unknown>): Misfit | undefined {
  const what = misfitOf(value);
  if (what) return { path, what };
  if (typeof value !== 'object' || value === null || value instanceof Date) return undefined;
  if (above.has(value)) return { path, what: 'a circle' };
  above.add(value);
  const entries: [string, unknown][] = Object.entries(value);
  for (const [key, one] of entries) {
    const misfit = findMisfit(one, `${path}.${key}`, above);
    if (misfit) return misfit;
  }
  above.delete(value);
  return undefined;
}

/** Dates are kept as texts, which the caller gets the first time, too. */
function misfitOf(value: unknown): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return `a ${typeof value}`;
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (value instanceof Date && Number.isNaN(value.getTime())) return 'an invalid Date';
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null)
    return undefined;
  return `a ${(value as object).constructor?.name ?? 'class'}`;
}
