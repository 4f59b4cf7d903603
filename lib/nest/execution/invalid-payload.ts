import type { ExternalContextCreator } from '@nestjs/core';
import { InvalidPayloadError, SkipRetry } from '../../errors.js';
import { hasCode } from '../../server/attempt/error-text.js';

/** What becomes of a task whose payload does not fit its handler. */
export type InvalidPayloadPolicy = 'archive' | 'retry';

/** Errors that came out of a pipe. The handler may throw a BadRequestException too, and that is an ordinary failure. */
const fromPipes = new WeakSet<object>();

/** Nest's context creator, noting which errors pipes throw. */
export function notePipeFailures(creator: ExternalContextCreator): ExternalContextCreator {
  const noting = Object.create(creator) as ExternalContextCreator;
  noting.getParamValue = async (value, metadata, pipes): Promise<unknown> => {
    try {
      return await creator.getParamValue(value, metadata, pipes);
    } catch (error) {
      if (typeof error === 'object' && error !== null) fromPipes.add(error);
      throw error;
    }
  };
  return noting;
}

/** Undecodable bytes. */
export const undecodable = (type: string, cause: unknown): InvalidPayloadError =>
  new InvalidPayloadError(`payload of task "${type}" cannot be decoded: ${messageOf(cause)}`, { cause });

/** The error a task fails with: one about its payload archives it, unless the policy says to retry. */
export function judgeFailure(error: unknown, type: string, policy: InvalidPayloadPolicy): unknown {
  const invalid = refusedByPipe(error)
    ? new InvalidPayloadError(`invalid payload of task "${type}": ${httpMessages(error)}`, { cause: error })
    : error;
  if (policy === 'retry' || !hasCode(invalid, 'ASYNQ_INVALID_PAYLOAD')) return invalid;
  if (hasCode(invalid, 'ASYNQ_SKIP_RETRY') || hasCode(invalid, 'ASYNQ_REVOKE_TASK')) return invalid;
  return new SkipRetry(messageOf(invalid), { cause: invalid });
}

/** By its shape, as Nest's own filters do it: the application's HttpException may be another copy's. */
interface HttpLike {
  getStatus(): number;
  getResponse(): unknown;
}

/** A pipe that failed for another reason (a database that is away) has not judged the payload. */
function refusedByPipe(error: unknown): error is HttpLike {
  if (typeof error !== 'object' || error === null || !fromPipes.has(error)) return false;
  const { getStatus, getResponse } = error as Partial<HttpLike>;
  if (typeof getStatus !== 'function' || typeof getResponse !== 'function') return false;
  const status = (error as HttpLike).getStatus();
  return status >= 400 && status < 500;
}

function httpMessages(error: HttpLike): string {
  const response = error.getResponse();
  const message: unknown =
    typeof response === 'object' && response !== null && 'message' in response ? response.message : response;
  if (Array.isArray(message)) return message.map(String).join('; ');
  return typeof message === 'string' && message !== '' ? message : messageOf(error);
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
