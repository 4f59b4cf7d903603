import { describe, expect, it } from 'vitest';
import { beginning, pieces, visible } from '../../../lib/dashboard/web/text/visible.js';

describe('texts from outside', () => {
  it.each([
    ['a\u202Eb', 'a⟨U+202E⟩b'],
    ['\u2066x\u2069', '⟨U+2066⟩x⟨U+2069⟩'],
    ['zero\u200Bwidth\uFEFF', 'zero⟨U+200B⟩width⟨U+FEFF⟩'],
    ['line\nbreak\ttab\0', 'line⟨\\n⟩break⟨\\t⟩tab⟨\\0⟩'],
    ['bell\u0007esc\u001b[31m', 'bell⟨U+0007⟩esc⟨U+001B⟩[31m'],
    ['half\ud800pair', 'half⟨U+D800⟩pair'],
    ['half\udc00', 'half⟨U+DC00⟩'],
    ['tag\u{e0041}', 'tag⟨U+E0041⟩'],
    ['soft\u00adhyphen\u2028', 'soft⟨U+00AD⟩hyphen⟨U+2028⟩'],
  ])('%j is seen as %s', (text, seen) => expect(visible(text)).toBe(seen));

  it.each(['plain', 'müßig', 'שלום', '日本語', '😀 family', ''])('leaves %j unchanged', (text) =>
    expect(visible(text)).toBe(text),
  );

  it('keeps line breaks on request, and nothing else', () => {
    expect(pieces('a\n\tb\r', true)).toEqual({
      found: [
        { text: 'a\n\tb', hidden: false },
        { text: '\\r', hidden: true },
      ],
      end: 5,
    });
  });

  it.each([
    [0, 0],
    [1, 2],
    [2, 2],
    [3, 4],
    [4, 4],
    [5, 5],
    [9, 5],
  ])('ends after %i pieces or one more, at character %i', (most, end) => {
    const shown = pieces('a\0b\0c', false, most);
    expect(shown.end).toBe(end);
    expect(shown.found.map(({ text }) => text).join('')).toBe('a\\0b\\0c'.slice(0, [0, 0, 3, 3, 6, 7][end]));
  });

  it('cuts long titles', () => {
    expect(visible('\u0007'.repeat(1_000_000))).toBe(`${'⟨U+0007⟩'.repeat(2_000)}…`);
  });

  it('cuts between characters', () => {
    expect(['😀😀', '😀', 'a😀'].map((text) => beginning(text, 2))).toEqual(['😀', '😀', 'a']);
  });
});
