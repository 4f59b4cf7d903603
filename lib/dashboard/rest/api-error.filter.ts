import { type ArgumentsHost, Catch, type ExceptionFilter, Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { printable, printableStack } from '../../printable.js';
import { toErrorReply } from './api-error.js';
import { plain, send } from './responder.js';

/** @returns whether the application's log should have the error */
export function replyWithError(host: HttpAdapterHost, response: unknown, error: unknown): boolean {
  const { status, code, text, unexpected } = toErrorReply(error);
  const { headers, body } = plain(text);
  send(host, response, { status, body, headers: { ...headers, 'X-Asynq-Error': code } });
  return unexpected;
}

/** Turns every error of the API, including those of guards, into plain text, as asynqmon does. */
@Catch()
@Injectable()
export class ApiErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('AsynqDashboard');

  constructor(private readonly host: HttpAdapterHost) {}

  catch(error: unknown, context: ArgumentsHost): void {
    const unexpected = replyWithError(this.host, context.switchToHttp().getResponse<unknown>(), error);
    if (unexpected) this.logger.error(error instanceof Error ? printableStack(error) : printable(String(error)));
  }
}
