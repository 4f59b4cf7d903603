import { defineTask } from 'nestjs-asynq';
import type { SignupDto } from './signup.dto.js';

/** The sample has its own queue, so it does not touch other tasks on the same Redis. */
export const MAIL_QUEUE = 'signup-mail';

export const WelcomeEmail = defineTask<SignupDto, string>('email:welcome', {
  queue: MAIL_QUEUE,
  maxRetry: 5,
  timeout: '30s',
  retention: '1h',
});
