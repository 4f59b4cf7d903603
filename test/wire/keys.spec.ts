import { describe, expect, it } from 'vitest';
import { Keyspace, QueueKeys, utcDay } from '../../lib/wire/keys.js';

const asynq = new Keyspace();

describe('unique keys (appendix A.3)', () => {
  it.each<[string, string, Buffer | undefined, string]>([
    ['default', 't', undefined, 'asynq:{default}:unique:t:'],
    ['default', 't', Buffer.alloc(0), 'asynq:{default}:unique:t:d41d8cd98f00b204e9800998ecf8427e'],
    [
      'default',
      'email:send',
      Buffer.from('{"a":1}'),
      'asynq:{default}:unique:email:send:bb6cb5c68df4652941caf652a366f2d8',
    ],
  ])('%s, %s, %s', (queue, type, payload, key) => {
    expect(asynq.queue(queue).unique(type, payload)).toBe(key);
  });
});

describe('keys of a queue', () => {
  it('are those of section 1.2', () => {
    const keys = asynq.queue('q');
    const { taskPrefix, groupPrefix, ...named } = keys;
    expect(named).toMatchObject({
      // ours
      delayedGroups: 'asynq:{q}:delayed_groups',
      waitlists: 'asynq:{q}:waitlists',
      waitingTasks: 'asynq:{q}:g:asynq:waiting',
    });
    expect(named).toMatchObject({
      pending: 'asynq:{q}:pending',
      active: 'asynq:{q}:active',
      lease: 'asynq:{q}:lease',
      scheduled: 'asynq:{q}:scheduled',
      retry: 'asynq:{q}:retry',
      archived: 'asynq:{q}:archived',
      completed: 'asynq:{q}:completed',
      groups: 'asynq:{q}:groups',
      aggregationSets: 'asynq:{q}:aggregation_sets',
      paused: 'asynq:{q}:paused',
      processed: 'asynq:{q}:processed',
      failed: 'asynq:{q}:failed',
    });
    expect(keys.task('id')).toBe(`${taskPrefix}id`);
    expect(keys.task('id')).toBe('asynq:{q}:t:id');
    expect(keys.group('a')).toBe(`${groupPrefix}a`);
    expect(keys.group('a')).toBe('asynq:{q}:g:a');
    expect(keys.aggregationSet('a', 'u-1')).toBe('asynq:{q}:g:a:u-1');
    expect(keys.processedOn('2024-01-02')).toBe('asynq:{q}:processed:2024-01-02');
    expect(keys.failedOn('2024-01-02')).toBe('asynq:{q}:failed:2024-01-02');
  });

  it.each(['a:b', ' spaces ', '{braced}', '}', 'é 😀', '', 'UPPER', '__proto__', 'constructor'])(
    'take the queue name %j as it is',
    (queue) => {
      expect(asynq.queue(queue).pending).toBe(`asynq:{${queue}}:pending`);
      expect(asynq.queue(queue).task('a:{b} 😀')).toBe(`asynq:{${queue}}:t:a:{b} 😀`);
      expect(asynq.queue(queue).unique('x:y', undefined)).toBe(`asynq:{${queue}}:unique:x:y:`);
    },
  );

  it('are created once per queue', () => {
    expect(asynq.queue('q')).toBe(asynq.queue('q'));
    expect(asynq.queue('q')).not.toBe(asynq.queue('Q'));
  });

  it('all have another prefix', () => {
    const keys = new QueueKeys('tenant:1', 'q');
    expect(keys.base).toBe('tenant:1:{q}:');
    expect(keys.unique('t', undefined)).toBe('tenant:1:{q}:unique:t:');
  });
});

describe('a key that begins like those of a queue', () => {
  const mail = asynq.queue('mail');

  it.each([
    ['asynq:{mail}:pending', true],
    ['asynq:{mail}:processed:2030-01-01', true],
    ['asynq:{mail}:of a later version', true],
    ['asynq:{mail}:t:x', true],
    ['asynq:{mail}:t:{x}', true],
    ['asynq:{mail}:t:x}:pending', true],
    ['asynq:{mail}:unique:t}:x:0cc175b9', true],
    ['asynq:{mail}:eu}:pending', false],
    ['asynq:{mail}:t:y}:t:id', false],
    ['asynq:{mail}}:pending', false],
    ['asynq:{mailbox}:pending', false],
    ['other:{mail}:pending', false],
  ])('%s: %s', (key, own) => {
    const names = ['mail', 'mail}:eu', 'mail}:t:y', 'mail}', 'mailbox'];
    expect(
      mail.owns(
        key,
        names.map((name) => asynq.queue(name)),
      ),
    ).toBe(own);
  });
});

describe('global keys', () => {
  it('are those of section 1.1', () => {
    expect(asynq.queues).toBe('asynq:queues');
    expect(asynq.servers).toBe('asynq:servers');
    expect(asynq.workers).toBe('asynq:workers');
    expect(asynq.schedulers).toBe('asynq:schedulers');
    expect(asynq.cancel).toBe('asynq:cancel');
    expect(asynq.server('host', 7, 'sid')).toBe('asynq:servers:{host:7:sid}');
    expect(asynq.serverWorkers('host', 7, 'sid')).toBe('asynq:workers:{host:7:sid}');
    expect(asynq.scheduler('host:7:sid')).toBe('asynq:schedulers:{host:7:sid}');
    expect(asynq.schedulerHistory('e1')).toBe('asynq:scheduler_history:e1');
  });

  it('all have another prefix', () => {
    const tenant = new Keyspace('tenant');
    const { queues, servers, workers, schedulers, cancel } = tenant;
    const all = [queues, servers, workers, schedulers, cancel, tenant.queue('q').lease, tenant.schedulerHistory('e')];
    expect(all.filter((key) => !key.startsWith('tenant:'))).toEqual([]);
  });
});

describe('utcDay', () => {
  it.each([
    ['2024-02-29T23:59:59.999Z', '2024-02-29'],
    ['2024-03-01T00:00:00.000Z', '2024-03-01'],
    ['1999-12-31T23:00:00-05:00', '2000-01-01'],
  ])('%s is on %s', (time, day) => {
    expect(utcDay(Date.parse(time))).toBe(day);
  });
});
