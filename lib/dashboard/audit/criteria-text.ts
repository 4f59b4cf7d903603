/** Criteria that are names and times. What people type into the others may be what is hidden there. */
const NAMES = ['type', 'id', 'older_than'];
const TEXTS = ['payload', 'field', 'error'];

/** Which tasks were meant, for the trail: `type email:, older_than 2h, error`. */
export function criteriaText(body: unknown): string {
  const given = body as Readonly<Record<string, unknown>>;
  const names = NAMES.filter((name) => given[name]).map((name) => `${name} ${String(given[name])}`);
  return [...names, ...TEXTS.filter((name) => given[name])].join(', ');
}
