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
import { AsynqInspector } from 'nestjs-asynq';
import { SignupDto } from './signup.dto.js';
import { Signups } from './signups.service.js';
import { MAIL_QUEUE } from './tasks.js';

/** `stored`: Redis does not have the task yet, or no longer. Has a `result` when the mail is sent, an `error` when the last attempt has failed. */
export interface SignupStatus {
  readonly state: string;
  readonly result?: unknown;
  readonly error?: string;
}

@Controller('signups')
export class SignupsController {
  constructor(
    private readonly signups: Signups,
    private readonly inspector: AsynqInspector,
  ) {}

  /** Returns as soon as sign-up and task are committed. A worker sends the mail. */
  @Post()
  @HttpCode(202)
  async signUp(
    @Body(new ValidationPipe({ whitelist: true })) signup: SignupDto,
    @Headers('x-tenant') tenant = 'public',
  ): Promise<{ taskId: string }> {
    return { taskId: await this.signups.add(signup, tenant) };
  }

  @Get(':taskId')
  async status(@Param('taskId') taskId: string): Promise<SignupStatus> {
    const info = await this.inspector.getTaskInfo(MAIL_QUEUE, taskId);
    if (!info) {
      if (await this.signups.has(taskId)) return { state: 'stored' };
      throw new NotFoundException(`no such signup: ${taskId}`);
    }
    return {
      state: info.state,
      result: info.result && JSON.parse(info.result.toString()),
      error: info.lastErr || undefined,
    };
  }
}
