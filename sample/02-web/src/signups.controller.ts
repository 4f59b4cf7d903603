import {
  Body,
  Controller,
  Get,
  Headers,
  HttpCode,
  NotFoundException,
  Param,
  Post,
  ValidationPipe,
} from '@nestjs/common';
import { AsynqInspector, InjectTasks, type TasksOf } from 'nestjs-asynq';
import { MailHandlers } from './mail.handlers.js';
import { SignupDto } from './signup.dto.js';
import { MAIL_QUEUE } from './tasks.js';

/** Has a `result` when the mail is sent, an `error` when the last attempt has failed. */
export interface SignupStatus {
  readonly state: string;
  readonly result?: unknown;
  readonly error?: string;
}

@Controller('signups')
export class SignupsController {
  constructor(
    @InjectTasks(MailHandlers) private readonly mails: TasksOf<MailHandlers>,
    private readonly inspector: AsynqInspector,
  ) {}

  /**
   * Returns as soon as the task is stored. A worker sends the mail: this process has no MailHandlers, and calls one of its methods all
   * the same.
   */
  @Post()
  @HttpCode(202)
  async signUp(
    @Body(new ValidationPipe({ whitelist: true })) signup: SignupDto,
    @Headers('x-tenant') tenant = 'public',
  ): Promise<{ taskId: string }> {
    const { id } = await this.mails.with({ headers: { tenant } }).welcome(signup);
    return { taskId: id };
  }

  @Get(':taskId')
  async status(@Param('taskId') taskId: string): Promise<SignupStatus> {
    const info = await this.inspector.getTaskInfo(MAIL_QUEUE, taskId);
    if (!info) throw new NotFoundException(`no such signup: ${taskId}`);
    return {
      state: info.state,
      result: info.result && JSON.parse(info.result.toString()),
      error: info.lastErr || undefined,
    };
  }
}
