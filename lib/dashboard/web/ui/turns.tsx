import type { ComponentChildren } from 'preact';

interface TurnProps {
  /** Which key turns, too: p or n. */
  to: 'prev' | 'next';
  title?: string;
  disabled: boolean;
  onClick: () => void;
  children: ComponentChildren;
}

/** A button to the page before or behind this one. */
export const Turn = ({ to, title, disabled, onClick, children }: TurnProps) => (
  <button
    type="button"
    class="button plain small"
    data-prev={to === 'prev' || undefined}
    data-next={to === 'next' || undefined}
    title={title}
    disabled={disabled}
    onClick={onClick}
  >
    {children}
  </button>
);

interface ForwardPagesProps {
  /** Undefined: this is the first page. */
  cursor: string | undefined;
  next: string | null;
  to: (cursor: string | undefined) => string;
}

/** Links of a list whose cursors only lead forward; nothing when there is one page only. */
export function ForwardPages({ cursor, next, to }: ForwardPagesProps) {
  if (cursor === undefined && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {cursor !== undefined && (
        <a class="button plain" href={to(undefined)} data-prev>
          First
        </a>
      )}
      {next !== null && (
        <a class="button plain" href={to(next)} data-next>
          Next
        </a>
      )}
    </nav>
  );
}
