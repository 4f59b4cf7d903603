/** The unit that a word means, and how many of it. */
const WORDS: readonly (readonly [word: RegExp, unit: string, times: number])[] = [
  [/^(?:n|ns|nanos?|nanosec(?:ond)?s?)$/, 'ns', 1],
  [/^(?:us|\u00b5s|\u03bcs|micros?|microsec(?:ond)?s?)$/, 'us', 1],
  [/^(?:ms|msecs?|millis?|millisec(?:ond)?s?)$/, 'ms', 1],
  [/^(?:s|secs?|seconds?)$/, 's', 1],
  [/^(?:m|mins?|minutes?)$/, 'm', 1],
  [/^(?:h|hrs?|hours?)$/, 'h', 1],
  [/^(?:d|days?)$/, 'd', 1],
  [/^(?:w|wks?|weeks?)$/, 'd', 7],
  [/^(?:mons?|months?)$/, 'd', 30],
  [/^(?:y|yrs?|years?)$/, 'd', 365],
];

const PART = /([\d.]+)\s*([a-z\u00b5\u03bc]+)/g;
const PARTS = /^(?:[\d.]+\s*[a-z\u00b5\u03bc]+(?:\s*,?\s*(?:and\s+)?|$))+$/;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const ISO = /^p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?)?$/;

/** The duration that a text most likely means, as this library writes it; `undefined` when it is like none. */
export function nearestDuration(text: string): string | undefined {
  const lower = text.trim().toLowerCase();
  if (lower.length > 60) return undefined;
  const clock = CLOCK.exec(lower) ?? undefined;
  if (clock) return joined(clock.slice(1), ['h', 'm', 's']);
  const iso = ISO.exec(lower) ?? undefined;
  if (iso) return joined(iso.slice(1), ['d', 'h', 'm', 's']);
  return PARTS.test(lower) ? spelledOut(lower) : undefined;
}

function joined(numbers: readonly (string | undefined)[], units: readonly string[]): string | undefined {
  const parts = numbers.map((number, index) => (Number(number ?? 0) > 0 ? `${Number(number)}${units[index]!}` : ''));
  return parts.join('') || undefined;
}

function spelledOut(text: string): string | undefined {
  let whole = '';
  for (const [, amount, word] of text.matchAll(PART)) {
    const [, unit, times] = WORDS.find(([known]) => known.test(word!)) ?? [];
    const number = Number(amount) * (times ?? 1);
    if (unit === undefined || !Number.isFinite(number)) return undefined;
    whole += `${number}${unit}`;
  }
  return whole;
}
