import { defineTask } from 'nestjs-asynq';
import type { SignupDto } from './signup.dto.js';

export const MAIL_QUEUE = 'mail';

export const WelcomeEmail = defineTask<SignupDto, string>('email:welcome', {
  queue: MAIL_QUEUE,
  maxRetry: 5,
  timeout: '30s',
  retention: '1h',
});
