import { useState } from 'preact/hooks';
import { count } from '../text/format.js';
import { beginning, pieces, visible } from '../text/visible.js';

interface TextProps {
  value: string;
  /** Keeps line breaks and tabs. */
  lines?: boolean;
  class?: string;
  /** Shows the whole text as a title: for places that cut it. */
  titled?: boolean;
  /** Characters shown at most. */
  most?: number;
}

/** Each hidden character is an element of its own: a browser stands some thousands of them, and not a million. */
const MOST = 10_000;

/** A text that others wrote. It is isolated from its surroundings, and what would not be seen is named. */
export function Text({ value, lines = false, class: name, titled = false, most = MOST }: TextProps) {
  const begun = beginning(value, most);
  return (
    <bdi class={name} title={titled ? visible(value) : undefined}>
      {pieces(begun, lines).map((piece, index) =>
        piece.hidden ? (
          <span key={index} class="hidden-character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
      {begun.length < value.length && '…'}
    </bdi>
  );
}

/** A text that may be very long: its beginning, and more of it when asked for. */
export function LongText({ value, lines }: Pick<TextProps, 'value' | 'lines'>) {
  const [most, setMost] = useState(MOST);
  // Without hidden characters a text is one element, however long.
  const next = (): number => (pieces(value.slice(0, most), lines).length > 1_000 ? most + MOST : most * 4);
  return (
    <>
      <Text value={value} lines={lines} most={most} />
      {value.length > most && (
        <button type="button" class="button plain small" onClick={() => setMost(next())}>
          More of {count(value.length)} characters
        </button>
      )}
    </>
  );
}
