import { AsynqError } from './asynq-error.js';

/** Redis cannot be reached, or refused the call. `cause` is the error of the driver. */
export class BrokerUnavailableError extends AsynqError {
  readonly code = 'ASYNQ_BROKER_UNAVAILABLE';
}

/** Redis, or a proxy, refuses CLIENT TRACKING: idle servers poll instead. `cause` is its reply. */
export class WakeUpRefusedError extends AsynqError {
  readonly code = 'ASYNQ_WAKE_UP_REFUSED';
}

/**
 * A Redis key has another type than asynq writes. Nothing was written. `cause` is the driver's
 * error.
 */
export class WrongKeyTypeError extends AsynqError {
  readonly code = 'ASYNQ_WRONG_KEY_TYPE';
}

/** Bytes from Redis are not the expected protobuf message. */
export class UndecodableMessageError extends AsynqError {
  readonly code = 'ASYNQ_UNDECODABLE_MESSAGE';
}
