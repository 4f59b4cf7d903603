import type { Deed } from './actions.js';
import type { Model } from './model.js';

/** What follows from an event: the model then, and what is to be done about it. */
export interface Step {
  readonly model: Model;
  readonly deed?: Deed;
  /** What is on the screen is to be read again, now. */
  readonly again?: boolean;
  readonly end?: 'quit' | 'interrupt';
}

/** Milliseconds that the answer to a key stays on the screen. */
const STATUS_STAYS = 10_000;

/** The model with something to say in the line for it. */
export const say = (model: Model, text: string, good = false): Model => ({
  ...model,
  status: { text, good, until: model.now + STATUS_STAYS },
});
