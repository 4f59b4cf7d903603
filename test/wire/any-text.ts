import fc from 'fast-check';

const codePoint = fc.oneof(
  fc.integer({ min: 0, max: 0x7f }),
  fc.integer({ min: 0x80, max: 0xd7ff }),
  fc.integer({ min: 0xe000, max: 0x10ffff }),
);

/** Any well-formed text, and the strings that fast-check knows to be dangerous. Its own unit `binary` takes seconds to set up. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.array(codePoint).map((points) => String.fromCodePoint(...points)),
  fc.string(),
);
