import { describe, expect } from 'vitest';
import type { NewStep } from '../../../lib/broker/workflows.js';
import { taskIdOfStep } from '../../../lib/broker/workflows.js';
import { InvalidTaskError } from '../../../lib/errors.js';
import { request } from '../../support/messages.js';
import type { DriverTest } from '../driver.js';
import { RunSession, step } from '../run-session.js';
import { exerciseGrowth } from './workflow-growth.js';
import { exerciseRunEnds } from './workflow-ends.js';
import { exerciseRunFailures } from './workflow-failures.js';
import { exerciseRunKills } from './workflow-kills.js';
import { exerciseRunLosses } from './workflow-losses.js';

const OTHER = { message: { queue: 'other' } };

/** a, then b and c, then d; some in another queue, and so another slot of a cluster. */
const diamond = (other: readonly string[]): NewStep[] =>
  [step('a'), step('b', { after: ['a'] }), step('c', { after: ['a'] }), step('d', { after: ['b', 'c'] })].map((one) =>
    other.includes(one.name)
      ? { ...one, request: { ...one.request, message: { ...one.request.message, queue: 'other' } } }
      : one,
  );

export function exerciseWorkflows(it: DriverTest): void {
  describe('a run of a workflow', () => {
    exerciseShapes(it);
    exerciseStart(it);
    exerciseResults(it);
    exerciseListing(it);
    exerciseMarks(it);
  });
  exerciseRunFailures(it);
  exerciseRunEnds(it);
  exerciseGrowth(it);
  exerciseRunLosses(it);
  exerciseRunKills(it);
}

function exerciseShapes(it: DriverTest): void {
  it.for([[], ['b'], ['a', 'd'], ['a', 'b', 'c', 'd']])(
    'lets each step run after those before it, with %j in another queue',
    async (other, { driver }) => {
      const session = new RunSession(driver);
      expect(await session.start(diamond(other))).toBe('started');
      expect(await session.states()).toEqual(['running', 'a:ready b:waiting c:waiting d:waiting']);
      await session.finish('a');
      expect(await session.states()).toEqual(['running', 'a:succeeded b:ready c:ready d:waiting']);
      await session.finish('c');
      expect(await session.states()).toEqual(['running', 'a:succeeded b:ready c:succeeded d:waiting']);
      await session.finish('b');
      expect(await session.states()).toEqual(['running', 'a:succeeded b:succeeded c:succeeded d:ready']);
      await session.finish('d');
      expect(await session.states()).toEqual(['succeeded', 'a:succeeded b:succeeded c:succeeded d:succeeded']);
      await session.expectNothingLeft();
    },
  );

  it.for(['done', 'archive', 'complete'] as const)(
    'notifies run and waiting task of a step that is watched after it was claimed: %s',
    async (ending, { driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a'), step('b'), step('end', { after: ['a', 'b'] })]);
      await session.claim('a');
      const waiting = session.waiting('w', [{ queue: 'default', id: taskIdOfStep('wf:1', 'a') }]);
      expect(await session.enqueueAfter(waiting)).toBe('enqueued');
      await session.settle('a', ending);
      await session.relay();
      const failed = ending === 'archive';
      expect((await session.states())[1]).toBe(
        failed ? 'a:failed b:ready end:cancelled' : 'a:succeeded b:ready end:waiting',
      );
      expect((await driver.broker.inspection.getTask('default', 'w'))?.state).toBe(failed ? 'archived' : 'pending');
      await session.finish('b', ...(failed ? [] : ['end']));
      expect((await session.stored()).state).toBe(failed ? 'failed' : 'succeeded');
    },
  );

  it('is a chain whose next step is claimed by the call that ends the one before', async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 100 }, (_, n) => `s${n}`);
    await session.start(names.map((name, n) => step(name, { after: n === 0 ? [] : [names[n - 1]!] })));
    let [task] = await driver.take(1);
    for (const name of names) {
      expect(task!.lease.id).toBe(taskIdOfStep('wf:1', name));
      [task] = await session.end(task!, 'done', '', 1);
    }
    expect(task).toBeUndefined();
    expect(session.sent).toEqual([]);
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('tells a handler of which step the task is', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a')]);
    const links = [{ k: 'r', to: 'default', run: 'wf:1', step: 'a' }];
    expect((await driver.takeOne()).links).toMatchObject(links);
  });

  it('has 300 steps at once, and one that waits for all of them', async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 300 }, (_, n) => `s${n}`);
    const wide = names.map((name, n) => step(name, { after: ['a'], ...(n % 3 === 0 ? OTHER : {}) }));
    await session.start([step('a'), ...wide, step('z', { after: names })]);
    await session.finish('a');
    expect(await session.stored()).toMatchObject({ steps: 302, open: 301 });
    await session.finish(...names);
    expect((await session.step('z')).state).toBe('ready');
    await session.finish('z');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('begins steps later that have a time or a delay', async ({ driver }) => {
    const session = new RunSession(driver);
    const later = { request: { processAt: driver.now + 600 } };
    await session.start([
      step('a', later),
      step('b', { delay: 90_000 }),
      step('c'),
      step('d', { after: ['c'], ...later }),
      step('e', { after: ['c'], delay: 30_500, ...OTHER }),
      step('f', { after: ['c'], request: { processAt: driver.now - 5 } }),
    ]);
    await session.finish('c');
    const at = async (name: string, queue = 'default') =>
      (await driver.broker.inspection.getTask(queue, taskIdOfStep('wf:1', name)))?.nextProcessAt;
    expect([await at('a'), await at('b'), await at('d'), await at('e', 'other'), await at('f')]).toEqual([
      driver.now + 600,
      driver.now + 90,
      driver.now + 600,
      driver.now + 31,
      undefined,
    ]);
    await session.finish('f');
    expect((await session.stored()).state).toBe('running');
  });
}

function exerciseStart(it: DriverTest): void {
  it('is started once by those who give it the same id', async ({ driver }) => {
    const session = new RunSession(driver);
    const other = new RunSession(driver);
    const both = await Promise.all([session.start([step('a')]), other.start([step('b')])]);
    expect(both.toSorted()).toEqual(['exists', 'started']);
    expect(await session.start([step('c')])).toBe('exists');
    expect((await driver.take(5)).length).toBe(1);
    expect((await session.stored()).graph).toHaveLength(1);
  });

  it('is started with others by one call, the same id once', async ({ driver }) => {
    const session = new RunSession(driver);
    const runs = ['x:1', 'x:2', 'x:1'].map((id) => session.newRun([step('a', {}, id)], { id }));
    expect((await session.workflows.start('default', runs)).statuses).toEqual(['started', 'started', 'exists']);
    expect((await driver.take(5)).map(({ lease }) => lease.id).toSorted()).toEqual(['x:1~a', 'x:2~a']);
    expect((await session.workflows.start('default', [])).statuses).toEqual([]);
  });

  it('has succeeded when it has no steps', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([]);
    expect(await session.states()).toEqual(['succeeded', '']);
    await session.expectNothingLeft();
  });

  it.for([
    [[step('a'), step('a')], 'same name'],
    [[step('a', { after: ['x'] })], 'not there'],
  ] as const)('is refused with wrong names: %j', async ([steps, why], { driver }) => {
    const session = new RunSession(driver);
    const run = session.newRun([...steps]);
    await expect(session.workflows.start('default', [run])).rejects.toThrow(InvalidTaskError);
    await expect(session.workflows.start('default', [run])).rejects.toThrow(why);
    expect(await session.workflows.runs('default', { offset: 0, size: 5 })).toEqual([]);
    expect(await driver.take(5)).toEqual([]);
  });

  it.for(['default', 'other'])(
    'fails a step whose task cannot be created in queue %s, and what waits for it',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      await driver.enqueue([request({ id: 'wf:1~b', queue }, { processAt: driver.now + 60 })], queue);
      await session.start([step('a'), step('b', { after: ['a'], message: { queue } }), step('c', { after: ['b'] })]);
      await session.finish('a');
      expect(await session.states()).toEqual(['failed', 'a:succeeded b:failed c:cancelled']);
      expect((await session.step('b')).error).toBe('there is another task with its id');
      expect((await session.step('c')).error).toBe('"b" has failed');
      for (const states of ['a:succeeded b:failed c:cancelled', 'a:succeeded b:ready c:cancelled']) {
        if (states.includes('ready')) {
          await driver.broker.administration.moveTasks(queue, 'delete', ['wf:1~b']);
        }
        driver.clock.advance(1_000);
        const reply = session.took(await session.workflows.retry('default', 'wf:1'));
        expect([reply.status, reply.steps]).toEqual(['retried', 1]);
        await session.relay();
        expect((await session.states())[1]).toBe(states);
      }
      await session.finish('b', 'c');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    },
  );

  it('ends once more when the step that it retries cannot be created again', async ({ driver }) => {
    const session = new RunSession(driver);
    await driver.enqueue([request({ id: 'wf:1~a' }, { processAt: driver.now + 6000 })]);
    await session.start([step('a')]);
    const first = (await session.stored()).endedAt!;
    driver.clock.advance(5_000);
    const reply = session.took(await session.workflows.retry('default', 'wf:1'));
    expect(reply.status).toBe('retried');
    expect(reply.news?.map(({ kind }) => kind)).toEqual(['run']);
    expect(await session.states()).toEqual(['failed', 'a:failed']);
    expect((await session.stored()).endedAt).toBe(first + 5_000);
    await session.expectNothingLeft();
  });

  it('fails a step at once whose lock is held when the run starts', async ({ driver }) => {
    const session = new RunSession(driver);
    const uniqueKey = 'asynq:{default}:unique:t:x';
    await driver.add({ uniqueKey }, { uniqueTtl: 60 });
    const unique = { message: { uniqueKey }, request: { uniqueTtl: 60 } };
    await session.start([step('a', unique), step('b', { after: ['a'] }), step('c')]);
    expect(await session.states()).toEqual(['running', 'a:failed b:cancelled c:ready']);
    expect((await session.step('a')).error).toBe('its unique lock is held by another task');
    await session.finish('c');
    expect((await session.stored()).state).toBe('failed');
    await session.expectNothingLeft();
  });
}

function exerciseResults(it: DriverTest): void {
  it('keeps the results of its steps, whoever ran them', async ({ driver }) => {
    const session = new RunSession(driver);
    const steps = [step('a'), step('b', { after: ['a'], ...OTHER }), step('c', { after: ['b'] })];
    await session.start(steps);
    await session.settle('a', 'complete');
    await session.relay();
    await session.finish('b');
    const results = await session.workflows.results('default', 'wf:1', ['b', 'c', 'a', 'x']);
    expect(results).toEqual([Buffer.from('result'), undefined, Buffer.from('result'), undefined]);
    expect((await session.stored()).graph.map(({ hasResult }) => hasResult)).toEqual([true, true, false]);
    expect(await session.workflows.results('default', 'none', ['a'])).toEqual([undefined]);
    expect(await session.workflows.results('default', 'wf:1', [])).toEqual([]);
  });

  it('knows the results of the steps before one, in the order of its definition', async ({ driver }) => {
    const session = new RunSession(driver);
    const names = Array.from({ length: 20 }, (_, n) => `s${n}`);
    const steps = [...names.map((name) => step(name, { optional: true })), step('s', { after: names }), step('x')];
    await session.start(steps);
    await session.fail('s3');
    await session.finish(...names.filter((name) => name !== 's3'), 'x');
    await session.grow(step('late', { after: ['s', 's7', 's2'] }));
    const before = async (name: string) =>
      Array.from(
        (await session.workflows.resultsBefore({ to: 'default', run: 'wf:1', step: name })) ?? [],
        ([key, value]) => `${key}:${value}`,
      );
    expect(await before('s')).toEqual(names.filter((name) => name !== 's3').map((name) => `${name}:result`));
    expect(await before('late')).toEqual(['s7:result', 's2:result']);
    expect(await before('s1')).toEqual([]);
    expect(await before('none')).toEqual([]);
    expect(await session.workflows.resultsBefore({ to: 'default', run: 'none', step: 's' })).toBeUndefined();
  });

  it('keeps a large result, and one with any bytes', async ({ driver }) => {
    const session = new RunSession(driver);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
    await session.start([step('a', OTHER), step('b', { after: ['a'] })]);
    const task = (await session.claim('a'))!;
    const result = Buffer.concat([bytes, Buffer.alloc(4 << 20, 7)]);
    session.took(await driver.exchange([{ kind: 'done', lease: task.lease, uniqueKey: '', result }], 0, 'other'));
    await session.relay();
    expect((await session.step('b')).state).toBe('ready');
    const [stored] = await session.workflows.results('default', 'wf:1', ['a']);
    expect(Buffer.from(stored as string).equals(result)).toBe(true);
  });
}

function exerciseListing(it: DriverTest): void {
  it('is listed, the newest first', async ({ driver }) => {
    const session = new RunSession(driver);
    for (const id of ['x:1', 'x:2', 'x:3']) {
      await session.workflows.start('default', [session.newRun([step('a', {}, id)], { id })]);
      driver.clock.advance(1000);
    }
    const list = (offset: number, size: number) => session.workflows.runs('default', { offset, size });
    expect((await list(0, 2)).map(({ id }) => id)).toEqual(['x:3', 'x:2']);
    expect((await list(2, 5)).map(({ id }) => id)).toEqual(['x:1']);
    expect(await list(3, 5)).toEqual([]);
    expect(await list(0, 0)).toEqual([]);
    expect((await list(0, 1))[0]).toEqual(await session.workflows.summary('default', 'x:3'));
    expect(await session.workflows.runs('other', { offset: 0, size: 5 })).toEqual([]);
  });

  it('is described as it was started', async ({ driver }) => {
    const session = new RunSession(driver);
    const startedAt = driver.clock.now();
    await session.start([
      step('a'),
      step('b', { onFailure: 'run', optional: true, after: ['a'], ...OTHER }),
      step('c', { after: ['b', 'a'], onFailure: 'wait' }),
    ]);
    driver.clock.advance(5_000);
    await session.finish('a');
    const none = { error: undefined, readyAt: undefined, endedAt: undefined, hasResult: false, optional: false };
    expect(await session.stored()).toEqual({
      queue: 'default',
      id: 'wf:1',
      name: 'wf',
      state: 'running',
      startedAt,
      endedAt: undefined,
      steps: 3,
      open: 2,
      failed: 0,
      reason: undefined,
      graph: [
        {
          ...none,
          name: 'a',
          type: 'do:a',
          queue: 'default',
          after: [],
          onFailure: 'cancel',
          state: 'succeeded',
          readyAt: startedAt,
          endedAt: startedAt + 5_000,
          hasResult: true,
        },
        {
          ...none,
          name: 'b',
          type: 'do:b',
          queue: 'other',
          after: ['a'],
          onFailure: 'run',
          optional: true,
          state: 'ready',
          readyAt: startedAt + 5_000,
        },
        { ...none, name: 'c', type: 'do:c', queue: 'default', after: ['b', 'a'], onFailure: 'wait', state: 'waiting' },
      ],
    });
    expect(await session.workflows.run('default', 'none')).toBeUndefined();
    expect(await session.workflows.summary('default', 'none')).toBeUndefined();
  });

  it.for(['default', 'other'])('has tasks in %s whose ids have no slash', async (queue, { driver }) => {
    const session = new RunSession(driver, 'order/1/x');
    const of = (name: string, after: string[] = []) => step(name, { message: { queue }, after }, session.id);
    await session.start([of('in/a'), of('in/b', ['in/a']), of('c', ['in/b'])]);
    const { pending } = await driver.queue(queue);
    expect(pending).toEqual(['order~1~~x~in~a']);
    await session.fail('in/a');
    await session.act('run', 'order~1~~x~in~a', queue);
    await session.finish('in/a');
    await session.act('delete', 'order~1~~x~in~b', queue);
    driver.clock.advance(600_000);
    await session.keep();
    expect(await session.states()).toEqual(['failed', 'in/a:succeeded in/b:failed c:cancelled']);
    await session.expectNothingLeft();
  });

  it('has any names', async ({ driver }) => {
    const names = ['', ' ', 'a b', '~', 'ü', '__proto__', '{x}', '"', '\\', '\n', '1'];
    const session = new RunSession(driver, 'wf: {ü} ~ "1"');
    const steps = names.map((name, n) =>
      step(name, { after: n === 0 ? [] : [names[n - 1]!], ...(n % 2 === 0 ? {} : OTHER) }, session.id),
    );
    expect(await session.start(steps)).toBe('started');
    for (const name of names) await session.finish(name);
    const { state, graph } = await session.stored();
    expect([state, graph.map(({ name }) => name)]).toEqual(['succeeded', names]);
    await session.expectNothingLeft();
  });
}

function exerciseMarks(it: DriverTest): void {
  it.for([{}, OTHER])('remembers the end of a step for those that wait for its key: %j', async (where, { driver }) => {
    const session = new RunSession(driver);
    const mark = (key: string) => ({ type: 'pay', key, rememberFor: 100 });
    const steps = [step('a', { mark: mark('1') }), step('b', { after: ['a'], mark: mark('2'), ...where })];
    await session.start(steps);
    const waiting = (id: string, key: string) => session.waiting(id, [{ type: 'pay', key }]);
    await session.enqueue(waiting('early 1', '1'), waiting('early 2', '2'));
    await session.relay();
    await session.finish('a', 'b');
    await session.enqueue(waiting('late', '2'));
    await session.relay();
    const ready = (await driver.take(5)).map(({ message }) => message.id);
    expect(ready.sort()).toEqual(['early 2', 'late']);
    expect(await session.claim('early 1')).toBeUndefined();
    expect(await session.states()).toEqual(['succeeded', 'a:succeeded b:succeeded']);
  });
}
