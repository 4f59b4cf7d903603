import { Injectable, UseGuards, UseInterceptors, ValidationPipe } from '@nestjs/common';
import { Payload, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { Mailer } from './mailer.js';
import { SignupDto } from './signup.dto.js';
import { WelcomeEmail } from './tasks.js';
import { TenantGuard } from './tenant.guard.js';
import { TimingInterceptor } from './timing.interceptor.js';

@Injectable()
@UseGuards(TenantGuard)
@UseInterceptors(TimingInterceptor)
export class MailHandlers {
  constructor(private readonly mailer: Mailer) {}

  /** A task with an invalid payload (a Go service may send anything) is archived at once with the messages. */
  @TaskHandler(WelcomeEmail)
  async welcome(@Payload(ValidationPipe) signup: SignupDto, @TaskCtx() task: TaskContext): Promise<string> {
    return this.mailer.send(signup.email, `Welcome, ${signup.name}!`, task.signal);
  }
}
