import type { ExternalContextCreator } from '@nestjs/core';
import { InvalidPayloadError, SkipRetry } from '../../errors.js';
import { hasCode } from '../../error-code.js';
import { BatchParam } from './batch-call.js';
import { type GlobalEnhancers, globalPipeOf } from './global-enhancers.js';

/** What happens to a task with an invalid payload. */
export type InvalidPayloadPolicy = 'archive' | 'retry';

/** The errors that pipes threw. A BadRequestException of the handler itself is an ordinary failure. */
const fromPipes = new WeakSet<object>();

/** Nest's context creator; it records the errors that pipes throw, and gives them the payloads of a batch one by one. */
export function recordPipeErrors(creator: ExternalContextCreator, globals: GlobalEnhancers): ExternalContextCreator {
  const noting = Object.create(creator) as ExternalContextCreator;
  const throughPipes: ExternalContextCreator['getParamValue'] = async (value, metadata, pipes): Promise<unknown> => {
    let result: unknown = value;
    for (const pipe of pipes) {
      try {
        result = await creator.getParamValue(result, metadata, [pipe]);
      } catch (error) {
        if (typeof error === 'object' && error !== null) fromPipes.add(error);
        globals.blame('pipe', pipe, error);
        throw error;
      }
    }
    return result;
  };
  noting.getParamValue = (value, metadata, pipes): Promise<unknown> =>
    value instanceof BatchParam
      ? value.through(pipes, (one, metatype) => throughPipes(one, { ...metadata, metatype }, pipes))
      : throughPipes(value, metadata, pipes);
  return noting;
}

/** The error for a payload that cannot be decoded. */
export const undecodable = (type: string, cause: unknown): InvalidPayloadError =>
  new InvalidPayloadError(`payload of task "${type}" cannot be decoded: ${messageOf(cause)}`, { cause });

/** The error that the task fails with: for an invalid payload one that archives it, unless the policy is `retry`. */
export function judgeFailure(error: unknown, type: string, policy: InvalidPayloadPolicy): unknown {
  const invalid = fromPipes.has(error as object) ? refusalOf(error, type) : error;
  if (policy === 'retry' || !hasCode(invalid, 'ASYNQ_INVALID_PAYLOAD')) return invalid;
  if (hasCode(invalid, 'ASYNQ_SKIP_RETRY') || hasCode(invalid, 'ASYNQ_REVOKE_TASK')) return invalid;
  return new SkipRetry(messageOf(invalid), { cause: invalid });
}

/** Checks the shape, like Nest's own filters: the application may have another copy of HttpException. */
interface HttpLike {
  getStatus(): number;
  getResponse(): unknown;
}

/** What a pipe has thrown, as the error of a payload that it refused; it may also have failed for another reason. */
export const refusalOf = (error: unknown, type: string): unknown =>
  isRefusal(error)
    ? new InvalidPayloadError(`invalid payload of task "${type}": ${httpMessages(error)}${byGlobal(error)}`, {
        cause: error,
      })
    : error;

function byGlobal(error: object): string {
  const pipe = globalPipeOf(error);
  return pipe === undefined ? '' : ` (refused by the global pipe ${pipe})`;
}

/** Whether the pipe refused the payload; it may also fail for another reason, such as its database. */
function isRefusal(error: unknown): error is HttpLike {
  if (typeof error !== 'object' || error === null) return false;
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
