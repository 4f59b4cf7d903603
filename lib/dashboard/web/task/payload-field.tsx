import type { PayloadText } from './payload.js';

/** Says whether the text is JSON. */
function remark({ as, text }: PayloadText): string {
  if (as === 'base64' || text.trim() === '') return '';
  try {
    JSON.parse(text);
    return 'JSON';
  } catch (error) {
    return /^\s*[[{"]/.test(text) ? `Not JSON: ${(error as Error).message}` : 'Text, not JSON';
  }
}

export const PayloadField = ({ value, onChange }: { value: PayloadText; onChange: (value: PayloadText) => void }) => (
  <div class="field">
    <label class="field">
      <span>Payload</span>
      <textarea
        value={value.text}
        spellcheck={false}
        rows={10}
        onInput={(event) => onChange({ ...value, text: event.currentTarget.value })}
      />
    </label>
    <div class="payload-as">
      <label class="check">
        <input
          type="checkbox"
          checked={value.as === 'base64'}
          onChange={(event) => onChange({ ...value, as: event.currentTarget.checked ? 'base64' : 'text' })}
        />
        <span>base64 of the bytes</span>
      </label>
      <small aria-live="polite">{remark(value)}</small>
    </div>
  </div>
);
