import { describe, expect, it } from 'vitest';
import { markUnsent, toBrokerError, wasSent } from '../../lib/broker/redis/connection/broker-error.js';
import { BrokerUnavailableError, ClosedError, InvalidOptionError } from '../../lib/errors.js';

const reply = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

describe('toBrokerError', () => {
  it.each([
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6379'), { code: 'ECONNREFUSED' }),
    new Error('Connection is closed.'),
    reply('LOADING Redis is loading the dataset in memory'),
    reply('CLUSTERDOWN The cluster is down'),
    reply('OOM command not allowed'),
  ])('turns "%s" into a BrokerUnavailableError that names the operation', (cause) => {
    const error = toBrokerError(cause, 'enqueue');
    expect(error).toBeInstanceOf(BrokerUnavailableError);
    expect(error.message).toBe(`enqueue: Redis is unavailable: ${cause.message}`);
    expect(error.cause).toBe(cause);
  });

  it.each([
    "CROSSSLOT Keys in request don't hash to the same slot",
    'ERR Script attempted to access keys that do not hash to the same slot script: x, on @user_script:1.',
  ])('reports "%s" as a bad name, not as an outage', (text) => {
    const error = toBrokerError(reply(text), 'describeQueue');
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toMatch(/^describeQueue: a cluster cannot keep this queue/);
  });

  it('accepts values that are no errors', () => {
    expect(toBrokerError('gone', 'enqueue').message).toBe('enqueue: Redis is unavailable: gone');
  });

  it.each([new ClosedError('closed'), new TypeError('x is not a function')])('leaves %s as it is', (error) => {
    expect(toBrokerError(error, 'enqueue')).toBe(error);
  });

  it('drops the arguments of the command that failed', () => {
    const cause = Object.assign(reply('WRONGPASS'), { command: { name: 'auth', args: ['secret'] } });
    expect(toBrokerError(cause, 'connect').cause).toMatchObject({ command: { name: 'auth' } });
    expect(JSON.stringify(cause)).not.toContain('secret');
  });
});

describe('wasSent', () => {
  it.each([
    ['a lost connection', new Error('Connection is closed.'), true],
    ['a connection reset', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }), true],
    ['a silent peer', new Error("Socket timeout. Expecting data, but didn't receive any in 10000ms."), true],
    ['an answer', reply('READONLY You can not write against a read only replica.'), false],
    ['what the driver refused', new Error("Stream isn't writeable and enableOfflineQueue options is false"), false],
    ['too many redirections', new Error('Too many Cluster redirections. Last error: MOVED 1 h:1'), false],
    ['what was marked', markUnsent(new Error('no connection')), false],
  ])('%s', (_what, error, sent) => {
    expect(wasSent(error)).toBe(sent);
    expect(wasSent(toBrokerError(error, 'enqueue'))).toBe(sent);
  });
});
