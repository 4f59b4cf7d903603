import type { When } from './when.js';

interface WhenFieldProps {
  value: When;
  onChange: (value: When) => void;
  /** Whether "at once" is an option. */
  now?: boolean;
}

export const WhenField = ({ value, onChange, now = false }: WhenFieldProps) => (
  <fieldset class="when">
    <legend>When</legend>
    <select
      value={value.how}
      aria-label="When"
      onChange={(event) => onChange({ ...value, how: event.currentTarget.value as When['how'] })}
    >
      {now && <option value="now">at once</option>}
      <option value="in">in</option>
      <option value="at">at</option>
    </select>
    {value.how === 'in' && (
      <>
        <input
          type="number"
          min="0"
          step="any"
          value={value.amount}
          aria-label="How long from now"
          onInput={(event) => onChange({ ...value, amount: event.currentTarget.value })}
        />
        <select
          value={value.unit}
          aria-label="Unit"
          onChange={(event) => onChange({ ...value, unit: event.currentTarget.value })}
        >
          <option value="1">seconds</option>
          <option value="60">minutes</option>
          <option value="3600">hours</option>
          <option value="86400">days</option>
        </select>
      </>
    )}
    {value.how === 'at' && (
      <input
        type="datetime-local"
        step="1"
        value={value.at}
        aria-label="Date and time"
        onInput={(event) => onChange({ ...value, at: event.currentTarget.value })}
      />
    )}
  </fieldset>
);
