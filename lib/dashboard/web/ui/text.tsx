import { pieces, visible } from '../text/visible.js';

interface TextProps {
  value: string;
  /** Keeps line breaks and tabs. */
  lines?: boolean;
  class?: string;
  /** Shows the whole text as a title: for places that cut it. */
  titled?: boolean;
}

/** A text that others wrote. It is isolated from its surroundings, and what would not be seen is named. */
export function Text({ value, lines = false, class: name, titled = false }: TextProps) {
  return (
    <bdi class={name} title={titled ? visible(value) : undefined}>
      {pieces(value, lines).map((piece, index) =>
        piece.hidden ? (
          <span key={index} class="hidden-character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}
