import { useState } from 'preact/hooks';
import { count } from '../text/format.js';
import { beginning, pieces, visible } from '../text/visible.js';

type Start = ReturnType<typeof pieces>;

interface TextProps {
  value: string;
  /** Keeps line breaks and tabs. */
  lines?: boolean;
  class?: string;
  /** Shows the whole text as a title, where the text is cut. */
  titled?: boolean;
}

/**
 * Each hidden character is an element of its own, and a browser lays out only some thousands at
 * once.
 */
const FIRST_LIMIT = { characters: 10_000, pieces: 2_000 };

const startOf = (value: string, lines: boolean, { characters, pieces: most } = FIRST_LIMIT) =>
  pieces(beginning(value, characters), lines, most);

function Rendered({ value, class: name, titled = false, start }: Omit<TextProps, 'lines'> & { start: Start }) {
  return (
    <bdi class={name} title={titled ? visible(value) : undefined}>
      {start.found.map((piece, index) =>
        piece.hidden ? (
          <span key={index} class="hidden-character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
      {start.end < value.length && '…'}
    </bdi>
  );
}

/**
 * A text from outside: isolated from the text around it, with hidden characters named. Shows the
 * beginning of a long one.
 */
export const Text = ({ lines = false, ...props }: TextProps) => (
  <Rendered {...props} start={startOf(props.value, lines)} />
);

/** A text that may be very long: its beginning, and more of it on request. */
export function LongText({ value, lines = false }: Pick<TextProps, 'value' | 'lines'>) {
  const [asked, setAsked] = useState(0);
  const most = { characters: FIRST_LIMIT.characters * 4 ** asked, pieces: FIRST_LIMIT.pieces * (asked + 1) };
  const start = startOf(value, lines, most);
  return (
    <>
      <Rendered value={value} start={start} />
      {start.end < value.length && (
        <button type="button" class="button plain small" onClick={() => setAsked(asked + 1)}>
          More of {count(value.length)} characters
        </button>
      )}
    </>
  );
}
