import type { ActionRequest } from './actions.js';
import type { Model } from './model.js';

/** What follows from an event: the next model, and what the dashboard has to do. */
export interface Transition {
  readonly model: Model;
  /** The action to perform. */
  readonly request?: ActionRequest;
  /** Read what is on the screen again, now. */
  readonly reload?: boolean;
  readonly end?: 'quit' | 'interrupt';
}

/** How long the status line shows the reply to a key. */
const STATUS_DISPLAY_MS = 10_000;

/** The model with a text in its status line. */
export const withStatus = (model: Model, text: string, good = false): Model => ({
  ...model,
  status: { text, good, until: model.now + STATUS_DISPLAY_MS },
});
