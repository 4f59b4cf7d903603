import { useRef, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { KnownType, Task } from '../api/task-types.js';
import { messageOf } from '../text/errors.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { payloadOf, type PayloadText } from './payload.js';

interface TemplateProps {
  queue: string;
  known: KnownType | undefined;
  onFill: (payload: PayloadText) => void;
}

/** What redaction rules hide is masked in the text; a payload that is hidden whole, or is too large, makes no template. */
function templateOf(task: Task): PayloadText | undefined {
  if (task.payload_size === 0 || task.payload_too_large) return undefined;
  if (!task.payload_redacted) return payloadOf(task);
  return task.payload_decoded ? { as: 'text', text: task.payload } : undefined;
}

const sizeWord = ({ payload_size: size }: Task): string => (size === 0 ? 'is empty' : 'is hidden or too large');

/** Fills in the payload of a recent task of the chosen type. */
export function Template({ queue, known, onFill }: TemplateProps) {
  const [said, setSaid] = useState('');
  const latest = useRef(onFill);
  latest.current = onFill;
  if (!known?.task_id) return null;
  const { type, task_id: id } = known;
  const fill = async (): Promise<void> => {
    try {
      const task = JSON.parse(await api.task(queue, id)) as Task;
      const payload = templateOf(task);
      if (payload) latest.current(payload);
      const hidden = 'Parts are hidden by a redaction rule: put values in their place.';
      if (payload) setSaid(task.payload_redacted ? hidden : `This is the payload of task ${visible(id)}.`);
      else setSaid(`The payload of task ${visible(id)} ${sizeWord(task)}.`);
    } catch (error) {
      setSaid(messageOf(error));
    }
  };
  return (
    <div class="payload-as">
      <Button small onClick={fill}>
        Fill in the payload of a recent {visible(type)}
      </Button>
      <small aria-live="polite">{said}</small>
    </div>
  );
}
