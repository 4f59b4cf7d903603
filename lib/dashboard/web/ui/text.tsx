import { useState } from 'preact/hooks';
import { count } from '../text/format.js';
import { beginning, pieces, visible } from '../text/visible.js';

type Begun = ReturnType<typeof pieces>;

interface TextProps {
  value: string;
  /** Keeps line breaks and tabs. */
  lines?: boolean;
  class?: string;
  /** Shows the whole text as a title: for places that cut it. */
  titled?: boolean;
}

/** Characters, and pieces: each hidden character is an element of its own, of which a browser lays out some thousands at once. */
const MOST = { characters: 10_000, pieces: 2_000 };

const begin = (value: string, lines: boolean, { characters, pieces: most } = MOST) =>
  pieces(beginning(value, characters), lines, most);

function Shown({ value, class: name, titled = false, begun }: Omit<TextProps, 'lines'> & { begun: Begun }) {
  return (
    <bdi class={name} title={titled ? visible(value) : undefined}>
      {begun.found.map((piece, index) =>
        piece.hidden ? (
          <span key={index} class="hidden-character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
      {begun.end < value.length && '…'}
    </bdi>
  );
}

/** A text that others wrote. It is isolated from its surroundings, and what would not be seen is named. Of a long one the beginning. */
export const Text = ({ lines = false, ...props }: TextProps) => <Shown {...props} begun={begin(props.value, lines)} />;

/** A text that may be very long: its beginning, and more of it when asked for. */
export function LongText({ value, lines = false }: Pick<TextProps, 'value' | 'lines'>) {
  const [asked, setAsked] = useState(0);
  const most = { characters: MOST.characters * 4 ** asked, pieces: MOST.pieces * (asked + 1) };
  const begun = begin(value, lines, most);
  return (
    <>
      <Shown value={value} begun={begun} />
      {begun.end < value.length && (
        <button type="button" class="button plain small" onClick={() => setAsked(asked + 1)}>
          More of {count(value.length)} characters
        </button>
      )}
    </>
  );
}
