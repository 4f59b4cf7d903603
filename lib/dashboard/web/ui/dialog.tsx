import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../text/errors.js';
import { Text } from './text.js';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

/** A modal dialog, open while it is rendered. Restores the focus when it closes. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    // Navigating away closes the dialog.
    window.addEventListener('hashchange', onClose);
    return () => {
      window.removeEventListener('hashchange', onClose);
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={wide ? 'wide' : ''} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  /** The label of the submit button. */
  does: string;
  danger?: boolean;
  ready?: boolean;
  /** A rejection is shown in the dialog, which stays open. */
  onSubmit: () => Promise<unknown>;
}

/** A dialog with an action: it closes when the action is done, and shows why it was refused. */
export function FormDialog({ does, danger = false, ready = true, onSubmit, children, ...rest }: FormDialogProps) {
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    try {
      await onSubmit();
      rest.onClose();
    } catch (reason) {
      setError(messageOf(reason));
      setBusy(false);
    }
  };
  return (
    <Dialog {...rest}>
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">{children}</div>
        {error && (
          <p class="problem" role="alert">
            <Text value={error} />
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" class="button plain" onClick={rest.onClose}>
            Close
          </button>
          <button type="submit" class={`button ${danger ? 'danger' : 'primary'}`} disabled={!ready} aria-busy={busy}>
            {does}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
