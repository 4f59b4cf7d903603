import { inspect } from 'node:util';
import { Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ASYNQ_BROKER,
  AsynqClient,
  AsynqModule,
  AsynqServer,
  type Broker,
  BrokerUnavailableError,
  RevokeTask,
  SkipRetry,
  TaskHandler,
  type AsynqEvents,
} from 'nestjs-asynq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AsynqEvents as Events } from '../../lib/events/events.js';
import { Redactor } from '../../lib/redaction/redactor.js';
import { logEvents } from '../../lib/logging/log.js';
import { quiet, testApp } from './support.js';

type Line = [level: string, message: string, stack?: string];

function recorded(redactor?: Redactor): { events: AsynqEvents; lines: Line[]; end: () => void } {
  const lines: Line[] = [];
  const level =
    (name: string) =>
    (message: string, stack?: string): void =>
      void lines.push(stack === undefined ? [name, message] : [name, message, stack]);
  const logger = { debug: level('debug'), log: level('log'), warn: level('warn'), error: level('error') };
  const events = new Events();
  return { events, lines, end: logEvents(events, logger, redactor) };
}

const task = { id: 'a1', type: 'email', queue: 'low' };
const boom = new Error('boom');

describe('the log', () => {
  test('of groups', () => {
    const { events, lines } = recorded();
    const of = { queue: 'low', group: 'g' };
    const retryAt = new Date('2024-01-02T03:04:05Z');
    events.emit('groupAggregated', { ...of, size: 3, task });
    events.emit('aggregationFailed', { ...of, size: 2, error: boom, retryAt });
    events.emit('groupsReclaimed', { queue: 'low', tasks: 1 });
    events.emit('groupsRepaired', { queue: 'low', listed: 2, removed: 0 });
    events.emit('groupNotAggregated', of);
    expect(lines).toEqual([
      [
        'error',
        'Aggregating 2 tasks of group "g" in queue "low" failed, they go back to the group at 2024-01-02T03:04:05.000Z: boom',
        boom.stack,
      ],
      ['warn', '1 task of queue "low" went back to their groups: aggregating them did not end in time'],
      ['warn', 'Repaired the list of groups of queue "low": 2 added, 0 empty ones removed'],
      [
        'warn',
        'Tasks wait in group "g" of queue "low", and no server aggregates them: ' +
          'add a method with @TaskAggregator() for it, or start the server that has one',
      ],
    ]);
  });

  test('of listeners and of the stream of events', () => {
    const { events, lines } = recorded();
    events.emit('listenerFailed', { event: 'failed', error: 'odd', listener: 'Alerts.on' });
    events.emit('listenersLeft', { listeners: 2 });
    events.emit('eventStreamFailed', { error: boom, lost: 1 });
    events.emit('eventStreamUnread', { error: boom });
    expect(lines.map(([level, text]) => `${level} ${text}`)).toEqual([
      'error Alerts.on of the event "failed" threw: odd',
      'warn 2 listeners of task events still running at the end, not waiting for them',
      'warn The event stream lacks 1 event, and all until it can be written again: boom',
      'warn The event stream cannot be read; trying again: boom',
    ]);
  });

  test('of what waits for others, and did not end well', () => {
    const { events, lines } = recorded();
    events.emit('waitEnded', { task, end: 'released', state: 'pending' });
    events.emit('waitEnded', { task, end: 'cancelled', state: 'archived', error: boom });
    events.emit('waitEnded', { task, end: 'revived', state: 'pending' });
    events.emit('waitEnded', { task, end: 'timedOut', state: 'scheduled' });
    const at = new Date(0);
    const run = { queue: 'low', id: 'order/1', name: 'order', steps: 3, failed: 1, startedAt: at, endedAt: at };
    events.emit('workflowEnded', { ...run, state: 'succeeded' });
    events.emit('workflowEnded', { ...run, state: 'failed' });
    events.emit('workflowEnded', { ...run, state: 'cancelled' });
    const batch = { queue: 'low', id: 'batch-1', name: 'rows', total: 9, openedAt: at, endedAt: at };
    events.emit('batchEnded', { ...batch, state: 'succeeded', failed: 0 });
    events.emit('batchEnded', { ...batch, state: 'completed', failed: 2 });
    expect(lines.map(([level, text]) => `${level} ${text}`)).toEqual([
      'warn Task email a1 in queue "low" was archived, and has not run: boom',
      'log Task email a1 in queue "low" runs after all: what it waited for has succeeded',
      'warn Task email a1 in queue "low" has waited for as long as it may, and runs now',
      'warn The workflow "order/1" of queue "low" has failed: 1 of 3 steps failed',
      'log The workflow "order/1" of queue "low" was cancelled',
      'warn The batch "rows" of queue "low" has ended: 2 of 9 tasks failed',
    ]);
  });

  test('of changes through the console', () => {
    const { events, lines } = recorded();
    const who = { at: new Date(0), actor: 'alice', process: 'h:1', queue: 'low' };
    events.emit('consoleAction', { ...who, action: 'pause', outcome: 'done' });
    const all = { scope: 'all', state: 'retry', group: 'g', count: 12 } as const;
    events.emit('consoleAction', { ...who, action: 'archive', outcome: 'done', ...all, failed: 0 });
    events.emit('consoleAction', { ...who, action: 'delete', outcome: 'done', scope: 'batch', count: 1, failed: 2 });
    const copy = { taskId: 'a', toQueue: 'other', newTaskId: 'b' };
    events.emit('consoleAction', { ...who, action: 'clone', outcome: 'done', ...copy, missing: 3 });
    const forged = { actor: 'eve" pause: done\n\u202e', taskId: 'x', detail: 'delete' };
    events.emit('consoleAction', { ...who, ...forged, action: 'cancel', outcome: 'refused', code: 'FORBIDDEN' });
    const schedule = { ...who, action: 'run_schedule', outcome: 'started', schedule: 's' } as const;
    events.emit('consoleTrailFailed', { action: schedule, error: boom });
    expect(lines.map(([level, text]) => `${level} ${text}`)).toEqual([
      'log Console: "alice" pause queue "low": done [h:1]',
      'log Console: "alice" archive all retry tasks of group "g" queue "low": done, 12 tasks [h:1]',
      'warn Console: "alice" delete some tasks queue "low": done, 1 task, not 2 tasks [h:1]',
      'log Console: "alice" clone task "a" queue "low" into queue "other": done, new task "b" [h:1]; the trail lacks 3 before it',
      String.raw`warn Console: "eve\" pause: done\n\u202e" cancel task "x" queue "low" (delete): refused (FORBIDDEN) [h:1]`,
      'error The audit trail of the console cannot be written, and lacks: "alice" run schedule "s" queue "low": started [h:1]: boom',
    ]);
  });

  test('keeps each message on one line, with any names and errors', () => {
    const { events, lines } = recorded();
    const forged = '[Nest] 1  - LOG [Asynq] Server closed';
    const ref = { id: `a\n${forged}`, type: '\u001b[2Jemail\u202e', queue: 'low\r\u2028' };
    const evil = new Error(`boom\n${forged}\n    at forged`);
    const queue = { queue: ref.queue, group: ref.id };
    events.emit('taskFinished', { task: ref, outcome: 'archived', retried: 0, maxRetry: 0, error: evil, duration: 5 });
    events.emit('taskDamaged', { task: ref, error: evil });
    events.emit('hookFailed', { hook: 'retryDelay', error: evil });
    events.emit('listenerFailed', { event: 'taskFinished', error: `x\n${forged}`, listener: ref.id });
    events.emit('groupNotAggregated', queue);
    events.emit('loopFailed', { loop: 'forwarder', error: evil });
    events.emit('queueUnreachable', { queue: ref.queue, error: evil, unsettled: 1 });
    expect(lines).toHaveLength(7);
    for (const [, message, stack = ''] of lines) {
      expect(message).toMatch(/^[\p{L}\p{N}\p{P}\p{S} ]+$/u);
      for (const line of stack.split('\n').slice(1)) expect(line).toMatch(/^ {4}at (?!forged)/);
    }
    expect(lines[0]?.[1]).toContain(`Task \\x1b[2Jemail\\u202e a\\n${forged} in queue "low\\r\\u2028"`);
  });

  test('of errors of any length, and of errors that cannot be read', () => {
    const { events, lines } = recorded();
    const unreadable = new Proxy(new Error('x'), {
      get: () => {
        throw new Error('trap');
      },
      getPrototypeOf: () => {
        throw new Error('trap');
      },
    });
    const long = new Error('body '.repeat(1_000_000));
    for (const error of [long, 'text '.repeat(1_000_000), unreadable]) {
      events.emit('taskFinished', { task, outcome: 'archived', retried: 0, maxRetry: 0, error, duration: 5 });
    }
    expect(lines.map(([level]) => level)).toEqual(['error', 'error', 'error']);
    expect(lines[0]?.[1]).toMatch(/ b… \(5000000 characters\)$/);
    expect(lines[0]?.[2]).toMatch(/\n {4}at /);
    expect(lines[2]?.[1]).toMatch(/an error that cannot be shown$/);
    for (const [, message, shown = ''] of lines) expect(message.length + shown.length).toBeLessThan(16_000);
  });

  test('of tasks: silent after success', () => {
    const { events, lines } = recorded();
    events.emit('taskStarted', { task, retried: 0, maxRetry: 5 });
    events.emit('taskFinished', { task, outcome: 'done', retried: 0, maxRetry: 5, duration: 5 });
    events.emit('taskFinished', { task, outcome: 'completed', retried: 0, maxRetry: 5, duration: 5 });
    expect(lines).toEqual([]);
  });

  test('of tasks: the worse the outcome, the higher the level', () => {
    const { events, lines } = recorded();
    const retryAt = new Date('2024-01-02T03:04:05Z');
    events.emit('taskFinished', { task, outcome: 'retry', retried: 2, maxRetry: 5, error: boom, retryAt, duration: 5 });
    events.emit('taskFinished', { task, outcome: 'archived', retried: 25, maxRetry: 5, error: boom, duration: 5 });
    events.emit('taskFinished', {
      task,
      outcome: 'revoked',
      retried: 0,
      maxRetry: 5,
      error: 'no longer wanted',
      duration: 5,
    });
    events.emit('taskFinished', { task, outcome: 'requeued', retried: 0, maxRetry: 5, error: boom, duration: 5 });
    events.emit('taskFinished', { task, outcome: 'requeued', retried: 0, maxRetry: 5, duration: 0 });
    events.emit('taskFinished', { task, outcome: 'lost', retried: 0, maxRetry: 5, duration: 5 });
    expect(lines).toEqual([
      [
        'warn',
        'Task email a1 in queue "low" failed (failures before: 2), next attempt at 2024-01-02T03:04:05.000Z: boom',
      ],
      ['error', 'Task email a1 in queue "low" failed and was archived (failures before: 25): boom', boom.stack],
      ['log', 'Task email a1 in queue "low" was revoked: no longer wanted'],
      ['log', 'Task email a1 in queue "low" was put back to the front of its queue'],
      ['debug', 'Task email a1 in queue "low" was put back to the front of its queue before its handler began'],
      [
        'warn',
        'Task email a1 in queue "low" was taken over by another server, or deleted; the result of its handler here is ignored',
      ],
    ]);
  });

  test('of errors that a rule hides: their kind, without their text', () => {
    const { events, lines } = recorded(new Redactor([[{ type: 'user:' }, { type: 'shown:', errors: 'show' }]]));
    const error = Object.assign(new TypeError('hunter2'), { code: 'with hunter2 in it' });
    const user = { id: 'a1', type: 'user:new', queue: 'low' };
    const retryAt = new Date();
    const attempt = { task: user, retried: 0, maxRetry: 1, duration: 5, error, retryAt };
    for (const outcome of ['retry', 'archived', 'revoked', 'postponed'] as const) {
      events.emit('taskFinished', { ...attempt, outcome });
    }
    events.emit('handlerStuck', { task: user, reason: 'hunter2', seconds: 10 });
    events.emit('taskDamaged', { task: user, error });
    events.emit('resultDropped', { task: user, error });
    events.emit('hookFailed', { hook: 'onError', task: user, error });
    events.on('taskRecovered', () => {
      throw error;
    });
    events.emit('taskRecovered', { ...attempt, crashes: 1, outcome: 'retry' });
    events.emit('periodicTaskFailed', { entry: { ...user, spec: '@daily', planned: retryAt }, error });
    const types = ['other', 'user:new'];
    events.emit('aggregationFailed', { queue: 'low', group: 'g', size: 2, types, error, retryAt });
    expect(lines).toHaveLength(11);
    expect(lines.filter((line) => line.join().includes('hunter2'))).toEqual([]);
    for (const [, message, ...stack] of lines)
      expect([message, stack]).toEqual([expect.stringContaining('[redacted] ('), []]);
    expect(lines[0]?.[1]).toMatch(/\[redacted\] \(TypeError\)$/);
    events.emit('taskFinished', { ...attempt, task: { ...user, type: 'shown:x' }, outcome: 'archived' });
    expect(lines.at(-1)).toEqual(['error', expect.stringContaining('hunter2'), error.stack]);
  });

  test('of payloads that are too new: once per type, queue and version', () => {
    const { events, lines } = recorded();
    for (const version of [2, 2, 3]) events.emit('payloadTooNew', { task, version, known: 1 });
    events.emit('payloadTooNew', { task, version: 3, known: 2 });
    const has = (version: number) =>
      `Tasks "email" in queue "low" have payloads of version ${version}, and their handler here`;
    const waits = 'they wait for a server with a newer definition';
    expect(lines).toEqual([
      ['warn', `${has(2)} knows only 1: ${waits}`],
      ['warn', `${has(3)} knows only 1: ${waits}`],
      ['warn', `${has(3)} knows up to 2: ${waits}`],
    ]);
  });

  test('of a periodic task that a wrong clock holds up: until when, and what to do', () => {
    const { events, lines } = recorded();
    const entry = { ...task, spec: '@hourly', planned: new Date('2024-03-01T01:10:00Z') };
    events.emit('periodicTaskAhead', { entry, ahead: 3_590_000, key: 'asynq:{low}:periodic:e' });
    expect(lines).toEqual([
      [
        'warn',
        `Periodic task ${task.type} (@hourly) counts as enqueued until 2024-03-01T01:10:00.000Z, 60 min from now, and no process ` +
          'enqueues it before: the clock of a machine was ahead, or the clock of this one is behind. Set the clocks right; ' +
          'then delete the key asynq:{low}:periodic:e to have it enqueued from then on',
      ],
    ]);
  });

  test('of failures around tasks', () => {
    const { events, lines } = recorded();
    events.emit('handlerStuck', { task, reason: boom, seconds: 10 });
    events.emit('taskDamaged', { task, error: boom });
    events.emit('resultDropped', { task, error: boom });
    events.emit('hookFailed', { hook: 'retryDelay', error: boom });
    events.emit('listenerFailed', { event: 'taskFinished', error: 'text' });
    events.emit('tasksRecovered', { queue: 'low', retried: 2, archived: 1, suspects: 0 });
    events.emit('queueRepaired', { queue: 'low', dangling: 3, leases: 4 });
    events.emit('linesFound', { queue: 'low' });
    expect(lines.map(([level, message]) => `${level}: ${message}`)).toEqual([
      'error: Task email a1 in queue "low" was aborted 10 s ago (boom), but its handler still runs and keeps its slot; pass task.signal to whatever it waits for',
      'error: Task a1 in queue "low" cannot be decoded and was archived unchanged: boom',
      'warn: Task email a1 in queue "low" succeeded, but its result cannot be stored: boom',
      'error: retryDelay threw and was ignored: boom',
      'error: A listener of the event "taskFinished" threw: text',
      'warn: Recovered tasks of a lost server, queue "low": 2 to retry, 1 archived',
      'warn: Repaired queue "low": 3 dangling ids removed, 4 running tasks given a lease',
      'warn: Tasks of queue "low" wait in turns by key, and this process has no queues: { "low": { fairness: true } }: it takes turns from now on; give the option to every process that serves the queue or enqueues to it, or no other takes these tasks',
    ]);
  });

  test('of a server', () => {
    const { events, lines, end } = recorded();
    events.emit('serverStarted', { concurrency: 10, queues: { critical: 6, low: 1 } });
    events.emit('wakeUnavailable', { error: boom });
    events.emit('handlersIdle', { handlers: 2 });
    events.emit('handlersMissing', { connection: 'default' });
    events.emit('serverStopped', { active: 1 });
    events.emit('shutdownTimedOut', { active: 2, aggregating: 0 });
    events.emit('shutdownTimedOut', { active: 0, aggregating: 1 });
    events.emit('serverClosed', { requeued: 2 });
    events.emit('serverClosed', { requeued: 0 });
    end();
    events.emit('serverClosed', { requeued: 0 });
    expect(lines.map(([level, message]) => `${level}: ${message}`)).toEqual([
      'log: Server started: concurrency 10, queues critical=6 low=1',
      'warn: Redis sends no wake-ups, so idle queues are polled: boom',
      'log: This process only produces (server: false): its 2 task handlers will not run here',
      'warn: No server is started, as this application has no task handler: list the class that has them under providers, ' +
        'or set server: false if this process only produces',
      'log: Stopped fetching; 1 task still running',
      'warn: The shutdown timeout has passed: 2 tasks still running, aborting',
      'warn: The shutdown timeout has passed: 0 tasks still running, aborting; 1 aggregation still running, not waiting for it',
      'log: Server closed; 2 tasks put back to the queue',
      'log: Server closed',
    ]);
  });

  test('of an outage: each loop once per reason, until Redis replies again', () => {
    const { events, lines } = recorded();
    const fail = (reason: string) => events.emit('loopFailed', { loop: 'heartbeater', error: new Error(reason) });
    events.emit('queueUnreachable', { queue: 'low', error: boom, unsettled: 1 });
    for (const reason of ['refused', 'refused', 'timeout', 'timeout']) fail(reason);
    events.emit('queueReachable', { queue: 'low' });
    fail('timeout');
    expect(lines).toEqual([
      ['warn', 'Redis does not reply for queue "low" (1 finished task waiting to be stored): boom'],
      ['warn', 'The heartbeater failed and tries again: refused'],
      ['warn', 'The heartbeater failed and tries again: timeout'],
      ['log', 'Redis replies again for queue "low"'],
      ['warn', 'The heartbeater failed and tries again: timeout'],
    ]);
  });

  test('of an unavailable Redis: once for all loops, until it replies again', () => {
    const { events, lines } = recorded();
    const fail = (loop: string, reason: string) =>
      events.emit('loopFailed', { loop, error: new BrokerUnavailableError(reason) });
    for (const reason of ['refused', 'timeout', 'refused']) {
      fail('heartbeater', reason);
      fail('forwarder', reason);
    }
    events.emit('queueReachable', { queue: 'low' });
    fail('janitor', 'refused');
    expect(lines).toEqual([
      ['warn', 'refused; trying again'],
      ['warn', 'timeout; trying again'],
      ['log', 'Redis replies again for queue "low"'],
      ['warn', 'refused; trying again'],
    ]);
  });

  test('copes with errors that cannot be shown', () => {
    const { events, lines } = recorded();
    const trap = (): never => {
      throw new Error('trap');
    };
    const unreadable = Object.defineProperty({}, inspect.custom, { value: trap });
    for (const error of [unreadable, Object.create(null), { status: 500 }, undefined]) {
      events.emit('hookFailed', { hook: 'onError', error });
    }
    expect(lines.map(([, line]) => line)).toEqual([
      'onError threw and was ignored: an error that cannot be shown',
      'onError threw and was ignored: [Object: null prototype] {}',
      'onError threw and was ignored: { status: 500 }',
      'onError threw and was ignored: undefined',
    ]);
  });
});

test("an application logs through Nest's Logger, with a context per connection and without lines of Nest's own", async () => {
  @Injectable()
  class Tasks {
    @TaskHandler('archives', { connection: 'billing' })
    archives() {
      throw new SkipRetry('gone');
    }
    @TaskHandler('revokes')
    revokes() {
      throw new RevokeTask();
    }
  }
  const lines: string[] = [];
  const level =
    (name: string) =>
    (message: string, ...rest: string[]): void =>
      void lines.push(`${name} [${rest.at(-1)}] ${message}`);
  const logger = { ...quiet, log: level('log'), warn: level('warn'), error: level('error') };
  const app = await Test.createTestingModule({
    imports: [
      AsynqModule.forRoot({ connection: 'memory' }),
      AsynqModule.forRoot({ connection: 'memory', name: 'billing' }),
    ],
    providers: [Tasks],
  })
    .setLogger(logger)
    .compile();
  onTestFinished(() => Logger.overrideLogger(quiet));
  await app.init();
  const { getAsynqClientToken, getAsynqServerToken } = await import('nestjs-asynq');
  const finished = (server: AsynqServer) => new Promise((resolve) => server.events.on('taskFinished', resolve));
  const both = [finished(app.get(AsynqServer)), finished(app.get(getAsynqServerToken('billing')))];
  await app.get(AsynqClient).enqueue('revokes', 0, { taskId: 'r' });
  await app.get<AsynqClient>(getAsynqClientToken('billing')).enqueue('archives', 0, { taskId: 'a' });
  await Promise.all(both);
  await app.close();
  expect(
    lines
      .filter((line) => line.includes('Task '))
      .sort()
      .reverse(),
  ).toEqual([
    'log [Asynq] Task revokes r in queue "default" was revoked: revoke task',
    'error [Asynq(billing)] Task archives a in queue "default" failed and was archived (failures before: 0): gone',
  ]);
  expect(lines.filter((line) => !/\[(Asynq|Asynq\(billing\)|InstanceLoader|NestFactory)\]/.test(line))).toEqual([]);
});

test('the log of a connection contains nothing that its rules hide, and quotes no payload that is not JSON', async () => {
  class Users {
    @TaskHandler('user:new')
    create(_: unknown) {
      throw new SkipRetry('hunter2');
    }
    @TaskHandler('other')
    other(_: unknown) {}
  }
  const { app, tasks } = await testApp({ providers: [Users] }, { redact: [{ type: 'user:', fields: ['password'] }] });
  const lines: string[] = [];
  const error = (...said: unknown[]): void => void lines.push(said.join(' '));
  Logger.overrideLogger({ ...quiet, error, warn: error });
  onTestFinished(() => Logger.overrideLogger(quiet));
  await app.get(AsynqClient).enqueue('user:new', { password: 'hunter2' });
  await app.get(AsynqClient).enqueue('other', Buffer.from('{"password":hunter2}'), { taskId: 'other' });
  await tasks.drain();
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain('hunter2');
  expect(lines.join()).toContain('[redacted] (ASYNQ_SKIP_RETRY)');
  const { message } = (await app.get<Broker>(ASYNQ_BROKER).inspection.getTask('default', 'other'))!;
  expect(message.errorMsg).toBe(`payload of task "other" cannot be decoded: Unexpected token 'h' is not valid JSON`);
});
