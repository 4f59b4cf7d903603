import type { KnownType } from '../api/task-types.js';
import { live } from '../live/live.js';
import { useStore } from '../store.js';
import type { TaskForm } from './form.js';
import { Template } from './template.js';
import { PayloadField } from './payload-field.js';
import { WhenField } from './when-field.js';

interface FieldsProps {
  form: TaskForm;
  onChange: (form: TaskForm) => void;
  /** Whether it is a new task; else a copy. */
  fresh?: boolean;
  /** Types to suggest. */
  types?: readonly KnownType[];
}

type Plain = Exclude<keyof TaskForm, 'payload' | 'when'>;

interface InputProps {
  label: string;
  name: Plain;
  type?: 'text' | 'number' | 'datetime-local';
  hint?: string;
  required?: boolean;
  list?: string;
}

const MORE: readonly InputProps[] = [
  { name: 'task_id', label: 'Id', hint: 'a new one' },
  { name: 'max_retry', label: 'Retries', type: 'number', hint: '25' },
  { name: 'timeout_seconds', label: 'Time limit, seconds', type: 'number', hint: '1800' },
  { name: 'retention_seconds', label: 'Keep when completed, seconds', type: 'number', hint: 'not at all' },
  { name: 'unique_seconds', label: 'Unique for, seconds', type: 'number', hint: 'not unique' },
  { name: 'group', label: 'Group', hint: 'none' },
  { name: 'expires_in_seconds', label: 'Expires unless begun, seconds', type: 'number', hint: 'never' },
  { name: 'deadline', label: 'Deadline', type: 'datetime-local' },
];

interface FieldProps extends InputProps {
  form: TaskForm;
  onChange: (form: TaskForm) => void;
}

const Field = ({ form, onChange, label, name, type = 'text', hint, required, list }: FieldProps) => (
  <label class="field">
    <span>{label}</span>
    <input
      type={type}
      name={name}
      required={required}
      list={list}
      placeholder={hint}
      value={form[name]}
      step={type === 'number' ? 'any' : undefined}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onChange({ ...form, [name]: event.currentTarget.value })}
    />
  </label>
);

const ExpiryField = ({ form, onChange }: Pick<FieldProps, 'form' | 'onChange'>) => (
  <label class="field">
    <span>When expired</span>
    <select
      name="on_expiry"
      value={form.on_expiry}
      onChange={(event) => onChange({ ...form, on_expiry: event.currentTarget.value })}
    >
      <option value="">archive it</option>
      <option value="drop">delete it</option>
    </select>
  </label>
);

const HeadersField = ({ form, onChange }: Pick<FieldProps, 'form' | 'onChange'>) => (
  <label class="field">
    <span>Headers, one per line</span>
    <textarea
      value={form.headers}
      placeholder="name: value"
      spellcheck={false}
      rows={3}
      onInput={(event) => onChange({ ...form, headers: event.currentTarget.value })}
    />
  </label>
);

export function TaskFields({ form, onChange, fresh = false, types = [] }: FieldsProps) {
  const queues = useStore(live, ({ queues }) => queues);
  const edited = { form, onChange };
  return (
    <>
      <datalist id="known-queues">
        {(queues ?? []).map(({ queue }) => (
          <option key={queue} value={queue} />
        ))}
      </datalist>
      <datalist id="known-types">
        {types.map(({ type }) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      <div class="field-row">
        <Field {...edited} name="queue" label="Queue" required list="known-queues" />
        <Field
          {...edited}
          name="type"
          label="Type"
          required
          hint={fresh ? 'email:welcome' : undefined}
          list="known-types"
        />
      </div>
      {form.payload ? (
        <PayloadField value={form.payload} onChange={(payload) => onChange({ ...form, payload })} />
      ) : (
        <p class="faint">The payload is hidden and is copied unchanged.</p>
      )}
      {fresh && (
        <Template
          key={form.type}
          queue={form.queue}
          known={types.find(({ type }) => type === form.type)}
          onFill={(payload) => onChange({ ...form, payload })}
        />
      )}
      <WhenField now value={form.when} onChange={(when) => onChange({ ...form, when })} />
      <details class="more">
        <summary>Options and headers</summary>
        <div class="field-row">
          {MORE.map((field) => (
            <Field key={field.name} {...edited} {...field} />
          ))}
          <ExpiryField {...edited} />
        </div>
        <HeadersField {...edited} />
      </details>
    </>
  );
}
