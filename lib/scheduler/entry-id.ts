import { createHash } from 'node:crypto';

/**
 * Equal for the same entry in every process, and formatted like asynq's ids. JSON keeps the parts
 * apart.
 */
export function deriveId(
  spec: string,
  tz: string,
  type: string,
  payload: Buffer,
  optionTexts: readonly string[],
): string {
  const parts = [spec, tz, type, payload.toString('base64'), [...optionTexts].sort()];
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join('-');
}
