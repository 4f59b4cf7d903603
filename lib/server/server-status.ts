import { ServerStateError } from '../errors.js';

/** `stopped`: claims nothing any more; what runs goes on. */
export type ServerStatus = 'new' | 'active' | 'stopped' | 'closed';

/** @throws ServerStateError with asynq's texts, unless the server can be started */
export function requireNew(status: ServerStatus, handlers: number): void {
  if (status === 'active') throw new ServerStateError('asynq: the server is already running');
  if (status === 'stopped') {
    throw new ServerStateError('asynq: the server is in the stopped state. Waiting for shutdown.');
  }
  if (status === 'closed') throw new ServerStateError('asynq: Server closed');
  if (handlers === 0) throw new ServerStateError('asynq: server cannot run with nil handler');
}

/** @throws ServerStateError */
export function requireActive(status: ServerStatus, what: string): void {
  if (status === 'active') return;
  throw new ServerStateError(`cannot ${what}: the server is ${status}; it must be active`);
}
