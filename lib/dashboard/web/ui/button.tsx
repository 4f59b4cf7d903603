import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

interface ButtonProps {
  children: ComponentChildren;
  onClick: () => unknown;
  kind?: 'plain' | 'primary' | 'danger';
  small?: boolean;
  disabled?: boolean;
  label?: string;
  /** A tooltip. */
  title?: string;
}

/** A button that is busy until its action is done, so it cannot be pressed twice. */
export function Button({
  children,
  onClick,
  kind = 'plain',
  small = false,
  disabled = false,
  label,
  title,
}: ButtonProps) {
  const [busy, setBusy] = useState(false);
  const press = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    try {
      await onClick();
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      class={`button ${kind}${small ? ' small' : ''}`}
      disabled={disabled}
      aria-busy={busy}
      aria-label={label}
      title={title}
      onClick={() => void press()}
    >
      {children}
    </button>
  );
}
