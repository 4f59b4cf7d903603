import type { TaskState } from '../../wire/states.js';
import type { Tone } from './styled-line.js';

/** States that want to be looked at stand out. */
export const STATE_TONES: Readonly<Partial<Record<TaskState, Tone>>> = {
  active: 'good',
  retry: 'warning',
  archived: 'bad',
};

/** The tone of a number, unless there is nothing to count. */
export const toneOfCount = (count: number, tone?: Tone): Tone | undefined => (count === 0 ? 'dim' : tone);
