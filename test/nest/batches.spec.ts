import { Injectable } from '@nestjs/common';
import {
  AsynqBatch,
  AsynqClient,
  AsynqInspector,
  type BatchOptions,
  BatchEndedError,
  BatchNotFoundError,
  BatchRunningError,
  BatchTimeoutError,
  defineTask,
  Payload,
  NotAMemberError,
  RevokeTask,
  type TaskContext,
  TaskCtx,
  TaskHandler,
} from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { rejection, testApp } from './support.js';

const Row = defineTask<{ n: number }>('row', { queue: 'rows', maxRetry: 1 });
const Folder = defineTask<{ files: number }>('folder', { maxRetry: 0 });
const Done = defineTask<{ import: number }>('done');
const Ended = defineTask<{ import: number }>('ended', { queue: 'mail' });
const Alarm = defineTask<{ import: number }>('alarm');

@Injectable()
class Imports {
  readonly log: string[] = [];
  readonly failing = new Set<number>();
  readonly revoked = new Set<number>();
  readonly left: string[] = [];

  @TaskHandler(Row)
  row(@Payload() { n }: { n: number }) {
    if (this.revoked.has(n)) throw new RevokeTask();
    if (this.failing.has(n)) throw new Error(`row ${n} is wrong`);
    this.log.push(`row ${n}`);
  }

  @TaskHandler(Folder)
  async folder(@Payload() { files }: { files: number }, @TaskCtx() task: TaskContext) {
    const added = await task.batch.add(Row, rows(files));
    const { pending, succeeded } = await task.batch.progress();
    this.log.push(`row: ${added} added, ${pending} pending, ${succeeded} succeeded`);
    this.left.push(task.batch.id);
  }

  @TaskHandler('alone')
  alone(@TaskCtx() task: TaskContext) {
    this.log.push(`member: ${task.isMember}`);
    return task.batch.id;
  }

  @TaskHandler(Done)
  done(@Payload() payload: { import: number }) {
    this.log.push(`done ${payload.import}`);
  }

  @TaskHandler(Ended)
  ended() {
    this.log.push('ended');
  }

  @TaskHandler(Alarm)
  alarm() {
    this.log.push('alarm');
  }
}

const QUEUES = { default: 1, rows: 1, others: 1, mail: 1 };

const callbacks = {
  onSuccess: [Done, { import: 42 }],
  onComplete: [Ended, { import: 42 }],
  onDeath: [Alarm, { import: 42 }],
} satisfies Partial<BatchOptions<typeof Done, typeof Ended, typeof Alarm>>;

const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));

async function setUp() {
  const { app, tasks } = await testApp({ providers: [Imports] }, { server: { queues: QUEUES } });
  const imports = app.get(Imports);
  return { tasks, imports, client: app.get(AsynqClient), inspector: app.get(AsynqInspector), log: imports.log };
}

const calls = (log: readonly string[]) => log.filter((line) => !line.startsWith('row'));

const archivedIds = (tasks: AsynqTester) => tasks.archived(Row).map(({ id }) => id);

describe('a batch of tasks with links', () => {
  const Schema = defineTask<{ n: number }>('schema', { key: () => 'all', rememberFor: '1d' });
  const Linked = defineTask<{ n: number }>('linked', {
    queue: 'rows',
    key: ({ n }) => String(n),
    after: { task: Schema, key: () => 'all' },
    rememberFor: '1d',
  });
  const Report = defineTask<{ n: number }>('report', {
    key: () => 'any',
    after: { task: Linked, key: ({ n }) => String(n) },
  });

  @Injectable()
  class Links {
    readonly log: string[] = [];

    @TaskHandler(Schema)
    schema() {
      this.log.push('schema');
    }

    @TaskHandler(Linked)
    linked(@Payload() { n }: { n: number }) {
      this.log.push(`row ${n}`);
    }

    @TaskHandler(Report)
    report() {
      this.log.push('report');
    }
  }

  it('waits for what its members wait for; its callback may wait for one of them', async () => {
    const { app, tasks } = await testApp({ providers: [Links] }, { server: { queues: QUEUES } });
    const [client, { log }] = [app.get(AsynqClient), app.get(Links)];
    await client.enqueue(Report, { n: 1 });
    const batch = await client.openBatch({ name: 'n', onSuccess: [Report, { n: 0 }] });
    await batch.add(Linked, rows(2));
    await batch.close();
    await tasks.drain();
    expect(log).toEqual([]);
    expect(tasks.waiting(Linked)).toHaveLength(2);
    expect(await batch.progress()).toMatchObject({ state: 'closed', pending: 2 });
    await client.enqueue(Schema, { n: 0 });
    await tasks.drain();
    expect(log.toSorted()).toEqual(['report', 'report', 'row 0', 'row 1', 'schema']);
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', succeeded: 2 });
  });

  it('ends when the wait of its last member is over', async () => {
    const { app, tasks } = await testApp({ providers: [Links] }, { server: { queues: QUEUES } });
    const batch = await app.get(AsynqClient).openBatch({ name: 'n', onComplete: [Schema, { n: 0 }] });
    await batch.add(Linked, rows(2));
    await batch.close();
    await tasks.advance('7d');
    expect(await batch.progress()).toMatchObject({ state: 'completed', failed: 2 });
    expect(app.get(Links).log).toEqual(['schema']);
  });
});

describe('a batch in an application', () => {
  it('calls back when it is closed and every member has succeeded', async () => {
    const { tasks, client, log } = await setUp();
    const batch = await client.openBatch({ name: 'import 42', ...callbacks });
    expect(batch).toBeInstanceOf(AsynqBatch);
    expect(await batch.add(Row, rows(3))).toBe(3);
    expect(await batch.progress()).toMatchObject({
      name: 'import 42',
      state: 'open',
      total: 3,
      pending: 3,
      succeeded: 0,
    });
    await tasks.drain();
    expect(log).toEqual(['row 0', 'row 1', 'row 2']);
    await batch.close();
    await tasks.drain();
    expect(calls(log).sort()).toEqual(['done 42', 'ended']);
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', total: 3, pending: 0, succeeded: 3, failed: 0 });
    await tasks.advance('1h');
    expect(calls(log)).toHaveLength(2);
  });

  it('succeeds without members, once it is closed', async () => {
    const { tasks, client, log } = await setUp();
    const batch = await client.openBatch({ name: 'none', ...callbacks });
    await tasks.drain();
    expect(log).toEqual([]);
    await batch.close();
    await batch.close();
    await tasks.drain();
    expect(log.sort()).toEqual(['done 42', 'ended']);
  });

  it('tells of the first member that died, ends with failures, and succeeds when these are run again', async () => {
    const { tasks, client, inspector, imports, log } = await setUp();
    imports.failing.add(1).add(2);
    const batch = await client.openBatch({ name: 'n', ...callbacks });
    await batch.add(Row, rows(4));
    await batch.close();
    await tasks.advance('1h');
    expect(calls(log).sort()).toEqual(['alarm', 'ended']);
    expect(await batch.progress()).toMatchObject({ state: 'completed', succeeded: 2, failed: 2, pending: 0 });
    imports.failing.clear();
    for (const id of archivedIds(tasks)) await inspector.runTask('rows', id);
    await tasks.drain();
    expect(calls(log).sort()).toEqual(['alarm', 'done 42', 'ended']);
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', succeeded: 4, failed: 0 });
  });

  it('counts members that were deleted or revoked as failed', async () => {
    const { tasks, client, inspector, imports, log } = await setUp();
    imports.revoked.add(0);
    const batch = await client.openBatch({ name: 'n', ...callbacks });
    await batch.add(Row, rows(3));
    await inspector.deleteTask('rows', `${batch.id}~1`);
    await batch.close();
    await tasks.advance('1m');
    expect(await batch.progress()).toMatchObject({ state: 'completed', succeeded: 1, failed: 2 });
    expect(calls(log).sort()).toEqual(['alarm', 'ended']);
  });

  it('is closed by the fleet when the process that has opened it is gone', async () => {
    const { tasks, client, log } = await setUp();
    const batch = await client.openBatch({ name: 'n', closeWithin: '10m', ...callbacks });
    await batch.add(Row, rows(2));
    await tasks.advance('9m');
    expect(calls(log)).toEqual([]);
    await tasks.advance('2m');
    expect(calls(log).sort()).toEqual(['done 42', 'ended']);
    await expect(batch.add(Row, rows(1))).rejects.toThrow(BatchEndedError);
  });

  it('is known until the retention after its end', async () => {
    const { tasks, client, inspector } = await setUp();
    const batch = await client.openBatch({ name: 'n', retention: '1d' });
    await batch.close();
    await tasks.advance('23h');
    expect(await batch.progress()).toMatchObject({ state: 'succeeded' });
    await tasks.advance('2h');
    await expect(batch.progress()).rejects.toThrow(BatchNotFoundError);
    expect(await inspector.getBatch('default', batch.id)).toBeUndefined();
  });

  it('takes members of several queues and types', async () => {
    const { tasks, client, log } = await setUp();
    const batch = await client.openBatch({ name: 'n', queue: 'home', ...callbacks });
    await batch.add(Row, rows(2));
    await batch.add(Row, [{ n: 2 }], { queue: 'others', processIn: '10m' });
    await batch.close();
    await tasks.drain();
    expect(calls(log)).toEqual([]);
    await tasks.advance('10m');
    expect(calls(log).sort()).toEqual(['done 42', 'ended']);
  });
});

describe('a member', () => {
  it('adds members, also after the batch was closed', async () => {
    const { tasks, client, imports, log } = await setUp();
    const batch = await client.openBatch({ name: 'n', ...callbacks });
    await batch.add(Folder, [{ files: 2 }]);
    await batch.close();
    await tasks.drain();
    expect(log).toContain('row: 2 added, 3 pending, 0 succeeded');
    expect(imports.left).toEqual([batch.id]);
    expect(calls(log).sort()).toEqual(['done 42', 'ended']);
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', total: 3 });
  });

  it('may add when it is run again after the batch has ended without it', async () => {
    const { tasks, client, inspector, imports, log } = await setUp();
    const folder = imports.folder.bind(imports);
    imports.folder = () => Promise.reject(new Error('no such folder'));
    const batch = await client.openBatch({ name: 'n', ...callbacks });
    await batch.add(Folder, [{ files: 1 }]);
    await batch.close();
    await tasks.drain();
    expect(await batch.progress()).toMatchObject({ state: 'completed', failed: 1 });
    await expect(batch.add(Row, rows(1))).rejects.toThrow(BatchEndedError);
    imports.folder = folder;
    await inspector.runTask('default', `${batch.id}~0`);
    await tasks.drain();
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', total: 2, succeeded: 2 });
    expect(calls(log).sort()).toEqual(['alarm', 'done 42', 'ended']);
  });

  it('is known to its callbacks, wherever they run, which are no members', async () => {
    const { tasks, imports, client } = await setUp();
    const seen: unknown[] = [];
    for (const name of ['done', 'ended', 'alarm'] as const) {
      imports[name] = (async (_: unknown, task: TaskContext) => {
        const { state, total, succeeded, failed } = await task.batch.progress();
        seen.push([
          name,
          task.headers['mine'],
          task.isMember,
          task.batch.queue,
          task.batch.id,
          state,
          total,
          succeeded,
          failed,
        ]);
        await expect(task.batch.add(Row, rows(1))).rejects.toThrow(BatchEndedError);
      }) as never;
    }
    imports.failing.add(1);
    const batch = await client.openBatch({
      name: 'n',
      queue: 'others',
      ...callbacks,
      onComplete: [Ended, { import: 42 }, { headers: { mine: 'yes' } }],
    });
    await batch.add(Row, rows(3));
    await batch.close();
    await tasks.drain();
    await tasks.advance('1h');
    const known = [false, 'others', batch.id, 'completed', 3, 2, 1];
    expect(seen.sort()).toEqual([
      ['alarm', undefined, ...known],
      ['ended', 'yes', ...known],
    ]);
  });

  it('is what other tasks are not', async () => {
    const { tasks, client, log } = await setUp();
    const { error } = await tasks.work('alone');
    expect(error).toBeInstanceOf(NotAMemberError);
    const batch = await client.openBatch({ name: 'n' });
    await batch.add('alone', [undefined]);
    await tasks.drain();
    expect(log).toEqual(['member: false', 'member: true']);
    expect(await batch.progress()).toMatchObject({ succeeded: 1 });
  });
});

describe('the inspector', () => {
  it('lists batches, newest first, of one queue or of all', async () => {
    const { tasks, client, inspector } = await setUp();
    const opened: AsynqBatch[] = [];
    for (const [name, queue] of [
      ['a', 'one'],
      ['b', 'two'],
      ['c', 'one'],
    ] as const) {
      opened.push(await client.openBatch({ name, queue }));
      await tasks.advance('1s');
    }
    const names = async (options?: Parameters<AsynqInspector['listBatches']>[0]) =>
      (await inspector.listBatches(options)).map(({ name }) => name);
    expect(await names()).toEqual(['c', 'b', 'a']);
    expect(await names({ queue: 'one' })).toEqual(['c', 'a']);
    expect(await names({ size: 1, page: 2 })).toEqual(['b']);
    expect(await names({ queue: 'none' })).toEqual([]);
    expect(await inspector.getBatch('two', opened[1]!.id)).toMatchObject({
      id: opened[1]!.id,
      queue: 'two',
      name: 'b',
    });
  });

  it('closes and deletes', async () => {
    const { client, inspector } = await setUp();
    const batch = await client.openBatch({ name: 'n' });
    await expect(inspector.deleteBatch('default', batch.id)).rejects.toThrow(BatchRunningError);
    await inspector.closeBatch('default', batch.id);
    expect(await batch.progress()).toMatchObject({ state: 'succeeded' });
    await inspector.deleteBatch('default', batch.id);
    await expect(inspector.deleteBatch('default', batch.id)).rejects.toThrow(BatchNotFoundError);
    await expect(inspector.closeBatch('default', batch.id)).rejects.toThrow('batch not found');
    expect(await inspector.listBatches()).toEqual([]);
  });

  it.each([
    [(inspector: AsynqInspector) => inspector.getBatch(' ', 'x'), /queue name must contain/],
    [(inspector: AsynqInspector) => inspector.closeBatch('q', ''), /batch ID must contain/],
    [(inspector: AsynqInspector) => inspector.listBatches({ queu: 'q' } as never), /did you mean "queue"/],
    [(inspector: AsynqInspector) => inspector.listBatches({ size: 0 }), /size must be a whole number from 1 to 1000/],
  ])('refuses arguments that are wrong', async (call, text) => {
    const { inspector } = await setUp();
    await expect(call(inspector)).rejects.toThrow(text);
  });
});

describe('waiting for a batch', () => {
  it('resolves with what became of the members, also when some have failed', async () => {
    const { client, tasks, imports, inspector } = await setUp();
    imports.failing.add(1);
    const batch = await client.openBatch({ name: 'n' });
    const outcome = batch.done({ timeout: '1h' });
    await batch.add(Row, rows(3), { maxRetry: 0 });
    await batch.close();
    await tasks.drain();
    const { state, total, succeeded, failed, endedAt } = await outcome;
    expectTypeOf(state).toEqualTypeOf<'succeeded' | 'completed'>();
    expectTypeOf(endedAt).toEqualTypeOf<Date>();
    expect([state, total, succeeded, failed]).toEqual(['completed', 3, 2, 1]);
    imports.failing.clear();
    await inspector.runTask('rows', archivedIds(tasks)[0]!);
    await tasks.drain();
    expect(await client.batch(batch).done()).toMatchObject({ state: 'succeeded', succeeded: 3, failed: 0 });
  });

  it('rejects at its timeout, while the batch goes on', async () => {
    const { client, tasks } = await setUp();
    const batch = await client.openBatch({ name: 'n' });
    const late = rejection(batch.done({ timeout: '1m' }));
    await tasks.advance('2m');
    expect(await late).toBeInstanceOf(BatchTimeoutError);
    expect((await late).message).toContain('has not ended within 60 s');
    expect((await late).message).toContain('cannot end before close(), or its closeWithin');
    expect(await batch.progress()).toMatchObject({ state: 'open' });
  });

  it('rejects for a batch that does not exist, a wrong timeout, and when the client is closed', async () => {
    const { client } = await setUp();
    expect(await rejection(client.batch({ queue: 'default', id: 'batch-x' }).done())).toBeInstanceOf(
      BatchNotFoundError,
    );
    const batch = await client.openBatch({ name: 'n' });
    expect(await rejection(batch.done({ timeout: 0 }))).toMatchObject({ code: 'ASYNQ_INVALID_OPTION' });
    const closed = rejection(batch.done());
    await client.close();
    expect(await closed).toMatchObject({ code: 'ASYNQ_CLOSED' });
  });
});
