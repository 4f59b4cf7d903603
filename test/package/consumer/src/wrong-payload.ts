import type { AsynqClient } from 'nestjs-asynq';
import { SendLetter } from './tasks.js';

/** The payload of SendLetter is a Letter: this file compiles only because the next but one line would not. */
export const wrong = (client: AsynqClient) =>
  // @ts-expect-error a letter has no sender
  client.enqueue(SendLetter, { from: 'me' });
