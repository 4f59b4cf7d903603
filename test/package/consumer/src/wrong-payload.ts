import { AsynqClient } from 'nestjs-asynq';
import { SendLetter } from './tasks.js';

/** Must not compile: the payload of SendLetter is a Letter. */
export const wrong = (client: AsynqClient) => client.enqueue(SendLetter, { from: 'me' });
