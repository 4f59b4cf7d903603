import type { TaskState } from '../../wire/states.js';
import type { Style } from './styled-line.js';

/** States that want to be looked at stand out. */
export const STATE_STYLES: Readonly<Partial<Record<TaskState, Style>>> = {
  active: 'good',
  retry: 'warning',
  archived: 'bad',
};

/** The style of a number, unless there is nothing to count. */
export const styleOfCount = (count: number, style?: Style): Style | undefined => (count === 0 ? 'dim' : style);
