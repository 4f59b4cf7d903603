import type { TaskState } from '../../wire/states.js';
import type { Style } from './styled-line.js';

/** States that need attention stand out. */
export const STATE_STYLES: Readonly<Partial<Record<TaskState, Style>>> = {
  active: 'good',
  retry: 'warning',
  archived: 'bad',
};

/** The style of a number; zero is dim. */
export const styleOfCount = (count: number, style?: Style): Style | undefined => (count === 0 ? 'dim' : style);
