import { describe, expect, it } from 'vitest';
import { decodeTaskMessage, encodeTaskMessage } from '../../lib/wire/codec.js';
import { Keyspace, utcDay, type QueueKeys } from '../../lib/wire/keys.js';
import type { TaskState } from '../../lib/wire/states.js';
import { bytesOf, hexOf, readGolden } from './golden.js';
import { zeroMessage } from '../support/messages.js';

/** A task as the Go client, or a Go server, left it in Redis; `Info` is what the Go inspector reads. */
interface CapturedTask {
  Name: string;
  Keys: string[];
  Msg: string;
  State: TaskState;
  Group?: string;
  UniqueKey?: string;
  Payload: string | null;
  Info: {
    ID: string;
    Queue: string;
    Type: string;
    Payload: string;
    Headers: Record<string, string> | null;
    MaxRetry: number;
    Retried: number;
    LastErr: string;
    Group: string;
    LastFailedAt: number;
    Timeout: number;
    Deadline: number;
    Retention: number;
    CompletedAt: number;
  };
}

const tasks = readGolden<CapturedTask[]>('tasks');
const asynq = new Keyspace();

const keysOfState = (keys: QueueKeys, task: CapturedTask): string[] =>
  task.State === 'aggregating' ? [keys.groups, keys.group(task.Group!)] : [keys[task.State as 'pending']];

function countersOf(keys: QueueKeys, { State, Info }: CapturedTask): string[] {
  const day = utcDay((Info.CompletedAt || Info.LastFailedAt) * 1000);
  if (State === 'completed') return [keys.processed, keys.processedOn(day)];
  if (State === 'retry' || State === 'archived') {
    return [keys.processed, keys.processedOn(day), keys.failed, keys.failedOn(day)];
  }
  return [];
}

describe('tasks captured from Go asynq', () => {
  it('have every state in which a task stays', () => {
    const states = new Set(tasks.map((task) => task.State));
    expect([...states].sort()).toEqual(['aggregating', 'archived', 'completed', 'pending', 'retry', 'scheduled']);
  });

  it.each(tasks)('$Name: read as Go reads it', ({ Msg, Info, UniqueKey }) => {
    expect(decodeTaskMessage(bytesOf(Msg))).toEqual(
      zeroMessage({
        id: Info.ID,
        queue: Info.Queue,
        type: Info.Type,
        payload: bytesOf(Info.Payload),
        headers: Info.Headers ?? undefined,
        maxRetry: Info.MaxRetry,
        retried: Info.Retried,
        errorMsg: Info.LastErr,
        groupKey: Info.Group,
        lastFailedAt: Info.LastFailedAt,
        timeout: Info.Timeout,
        deadline: Info.Deadline,
        retention: Info.Retention,
        completedAt: Info.CompletedAt,
        uniqueKey: UniqueKey ?? decodeTaskMessage(bytesOf(Msg)).uniqueKey,
      }),
    );
  });

  it.each(tasks)('$Name: written as Go writes it', ({ Msg }) => {
    expect(hexOf(encodeTaskMessage(decodeTaskMessage(bytesOf(Msg))))).toBe(Msg);
  });

  it.each(tasks)('$Name: under the keys that Go uses', (task) => {
    const keys = asynq.queue(task.Info.Queue);
    const message = decodeTaskMessage(bytesOf(task.Msg));
    const lock = message.uniqueKey
      ? [keys.unique(task.Info.Type, task.Payload === null ? undefined : bytesOf(task.Payload))]
      : [];
    expect(lock).toEqual(message.uniqueKey ? [message.uniqueKey] : []);
    const expected = [asynq.queues, keys.task('id1'), ...keysOfState(keys, task), ...countersOf(keys, task), ...lock];
    expect([...task.Keys].sort()).toEqual(expected.sort());
  });

  it('distinguish the nil payload from the empty one in the lock only', () => {
    const named = (name: string) => tasks.find((task) => task.Name === name)!;
    const [nil, empty] = [named('unique, nil payload'), named('unique, empty payload')];
    expect([nil.UniqueKey, empty.UniqueKey]).toEqual([
      'asynq:{default}:unique:t:',
      'asynq:{default}:unique:t:d41d8cd98f00b204e9800998ecf8427e',
    ]);
    expect(decodeTaskMessage(bytesOf(nil.Msg)).payload).toEqual(decodeTaskMessage(bytesOf(empty.Msg)).payload);
  });
});
