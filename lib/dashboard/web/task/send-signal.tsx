import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { messageOf } from '../text/errors.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';

interface SendSignalProps {
  queue: string;
  id: string;
  /** The signal that a step waits for. */
  name: string;
  onDone: () => void;
  onClose: () => void;
}

type Read = { payload?: unknown } | { problem: string };

/** No text is no payload. */
function read(text: string): Read {
  if (text.trim() === '') return {};
  try {
    return { payload: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `Not JSON: ${messageOf(error)}` };
  }
}

/** Sends a signal to the handler of a task. */
export function SendSignal({ queue, id, name: awaited, onDone, onClose }: SendSignalProps) {
  const [name, setName] = useState(awaited);
  const [text, setText] = useState('');
  const payload = read(text);
  const problem = 'problem' in payload ? payload.problem : '';
  const send = async (): Promise<void> => {
    await api.signal(queue, id, { name, ...payload });
    notify('The signal is sent.');
    onDone();
  };
  return (
    <FormDialog
      title="Send a signal"
      does="Send"
      ready={problem === '' && name !== ''}
      onSubmit={send}
      onClose={onClose}
    >
      <label class="field">
        <span>Name</span>
        <input
          value={name}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Payload, JSON (optional)</span>
        <textarea
          value={text}
          rows={6}
          spellcheck={false}
          placeholder={'{"by": "anna"}'}
          aria-invalid={problem !== ''}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <small aria-live="polite">{problem}</small>
      </label>
    </FormDialog>
  );
}
