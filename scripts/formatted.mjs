import { readFileSync } from 'node:fs';
import { format } from 'oxfmt';

const {
  $schema: _,
  ignorePatterns: __,
  ...options
} = JSON.parse(readFileSync(new URL('../.oxfmtrc.json', import.meta.url), 'utf8'));

/** The text of a generated file, as `npm run format` leaves it. */
export async function formatted(path, text) {
  const { code, errors } = await format(path, text, options);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  return code;
}
