const TO_FOLD = /[A-Z_\-\u0080-\uffff]/;

/**
 * The folded spelling of a name: Go's JSON decoder, too, reads `PASSWORD` and `paſſword` as
 * `password`.
 */
export function foldName(name: string): string {
  if (!TO_FOLD.test(name)) return name;
  const folded = name.toLowerCase().replaceAll('\u017f', 's').replaceAll(/[_-]/g, '');
  return folded || name;
}

/**
 * Matches where one of these (folded) names may occur in a text, in any spelling: an escape may
 * stand for any letter.
 */
export function anyOfNames(names: Iterable<string>): RegExp {
  const spellings = [...names].map((name) =>
    [...name].map((letter) => letter.replace(/[\\^$.*+?()[\]{}|/]/, String.raw`\$&`)).join('[_-]*'),
  );
  return new RegExp([String.raw`\\u`, ...spellings].join('|'), 'iu');
}
