import { defineTask } from 'nestjs-asynq';
import type { SignupDto } from './signup.dto.js';

/** A queue of its own: this sample leaves other tasks on the same Redis alone. */
export const MAIL_QUEUE = 'signup-mail';

export const WelcomeEmail = defineTask<SignupDto, string>('email:welcome', {
  queue: MAIL_QUEUE,
  maxRetry: 5,
  timeout: '30s',
  retention: '1h',
});
