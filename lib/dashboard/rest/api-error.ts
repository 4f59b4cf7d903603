import { HttpException } from '@nestjs/common';
import { AsynqError } from '../../errors.js';

export type ApiErrorCode =
  | 'BAD_REQUEST'
  | 'CROSS_ORIGIN'
  | 'ELSEWHERE'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'READ_ONLY'
  | 'TOO_LARGE'
  | 'UNSUPPORTED_TYPE'
  | 'UPSTREAM';

const STATUS: Readonly<Record<ApiErrorCode, number>> = {
  BAD_REQUEST: 400,
  CROSS_ORIGIN: 403,
  ELSEWHERE: 409,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  READ_ONLY: 405,
  TOO_LARGE: 413,
  UNSUPPORTED_TYPE: 415,
  UPSTREAM: 502,
};

/** An error of the API itself. */
export class ApiError extends Error {
  constructor(
    readonly code: ApiErrorCode,
    message: string,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** The error class of body checks. */
export class BadRequest extends ApiError {
  constructor(message: string) {
    super('BAD_REQUEST', message);
  }
}

/** HTTP statuses of the library's errors; 500 for any other. */
const ASYNQ_STATUS: ReadonlyMap<string, number> = new Map([
  ['ASYNQ_INVALID_OPTION', 400],
  ['ASYNQ_INVALID_TASK', 400],
  ['ASYNQ_QUEUE_NOT_EMPTY', 400],
  ['ASYNQ_QUEUE_NOT_FOUND', 404],
  ['ASYNQ_PERIODIC_ENTRY_NOT_FOUND', 404],
  ['ASYNQ_TASK_NOT_FOUND', 404],
  ['ASYNQ_TASK_STATE', 409],
  ['ASYNQ_ARCHIVE_FULL', 409],
  ['ASYNQ_QUEUE_FULL', 409],
  ['ASYNQ_DUPLICATE_TASK', 409],
  ['ASYNQ_TASK_ID_CONFLICT', 409],
  ['ASYNQ_WORKFLOW_NOT_FOUND', 404],
  ['ASYNQ_WORKFLOW_STATE', 409],
  ['ASYNQ_BATCH_NOT_FOUND', 404],
  ['ASYNQ_BATCH_RUNNING', 409],
  ['ASYNQ_BROKER_UNAVAILABLE', 503],
  ['ASYNQ_CLOSED', 503],
]);

/** What the guards of an application throw. */
const GUARD_CODES: ReadonlyMap<number, string> = new Map([
  [401, 'UNAUTHORIZED'],
  [403, 'FORBIDDEN'],
]);

export interface ErrorReply {
  readonly status: number;
  readonly code: string;
  /** One sentence, never a stack. */
  readonly text: string;
  /** Whether the application's log should have it. */
  readonly unexpected: boolean;
}

/** The reply to a request that failed. */
export function toErrorReply(error: unknown): ErrorReply {
  if (error instanceof ApiError) {
    return { status: STATUS[error.code], code: error.code, text: error.message, unexpected: false };
  }
  if (error instanceof AsynqError) {
    const status = ASYNQ_STATUS.get(error.code) ?? 500;
    return { status, code: error.code, text: error.message, unexpected: status === 500 };
  }
  if (error instanceof HttpException) {
    const status = error.getStatus();
    return {
      status,
      code: GUARD_CODES.get(status) ?? 'HTTP',
      text: error.message,
      unexpected: false,
    };
  }
  return { status: 500, code: 'INTERNAL', text: "this did not work; the application's log says why", unexpected: true };
}
