import { isReply } from './broker-error.js';

const LOGIN = /^(NOAUTH|WRONGPASS) /;
const SILENCE = /ETIMEDOUT|wrong version number|packet length too long/;

/** What to do when there is no connection, as a sentence behind the reason; empty when the reason says it. */
export function connectionRemedy(error: Error | undefined, hasTls: boolean): string {
  if (hasTls && (error === undefined || SILENCE.test(error.message))) {
    return ' If this port does not speak TLS, give redis:// or leave out tls.';
  }
  if (error === undefined) return '';
  if (!isReply(error)) {
    return !hasTls && error.message.includes('ECONNRESET')
      ? ' If this port speaks TLS, give rediss:// or tls: {}.'
      : '';
  }
  if (LOGIN.test(error.message)) return ' Give username and password in the connection or its URL.';
  if (isRefusedDatabase(error)) return ' Give another db in the connection or its URL.';
  if (error.message.includes('cluster support disabled')) return ' It is no cluster: give { host, port } or a URL.';
  return '';
}

/** Whether Redis has no such database. ioredis only reports it, and goes on in database 0. */
export const isRefusedDatabase = (error: unknown): boolean =>
  isReply(error) && (error as { command?: { name?: unknown } }).command?.name?.toString().toLowerCase() === 'select';
