import { describe, expect, it } from 'vitest';
import {
  decodeSchedulerEnqueueEvent,
  decodeSchedulerEntry,
  decodeServerInfo,
  decodeWorkerInfo,
  encodeSchedulerEntry,
  encodeServerInfo,
  encodeWorkerInfo,
} from '../../lib/wire/codec.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { formatOption, parseOption } from '../../lib/wire/options.js';
import { bytesOf, hexOf, readGolden } from './golden.js';

interface CapturedMonitoring {
  Servers: {
    Key: string;
    ServerInfo: string;
    WorkersKey: string;
    Workers: Record<string, string>;
    Read: {
      ID: string;
      Host: string;
      PID: number;
      Concurrency: number;
      Queues: Record<string, number>;
      StrictPriority: boolean;
      Started: string;
      Status: string;
      ActiveWorkers: {
        TaskID: string;
        TaskType: string;
        TaskPayload: string | null;
        Queue: string;
        Started: string;
        Deadline: string;
      }[];
    };
  }[];
  Scheduler: {
    Key: string;
    Entries: string[];
    Read: {
      ID: string;
      Spec: string;
      TaskType: string;
      TaskPayload: string;
      Options: string[];
      Next: string;
      Prev: string;
    }[];
    History: Record<string, string[]>;
    Events: Record<string, { TaskID: string; EnqueuedAt: string }[]>;
  };
}

const { Servers: servers, Scheduler: scheduler } = readGolden<CapturedMonitoring>('monitoring');
const asynq = new Keyspace();

/** Go's inspector shows zero time as the year 1. */
const maybe = (time: string): number | undefined => (time.startsWith('0001-') ? undefined : Date.parse(time));

describe.each(servers)('a Go server that is $Read.Status', ({ Key, ServerInfo, WorkersKey, Workers, Read }) => {
  const info = decodeServerInfo(bytesOf(ServerInfo));

  it('is read as Go reads it', () => {
    expect(info).toEqual({
      host: Read.Host,
      pid: Read.PID,
      serverId: Read.ID,
      concurrency: Read.Concurrency,
      queues: Read.Queues,
      strictPriority: Read.StrictPriority,
      status: Read.Status,
      startTime: Date.parse(Read.Started),
      activeWorkerCount: Read.ActiveWorkers.length,
    });
    expect(decodeServerInfo(encodeServerInfo(info))).toEqual(info);
  });

  it('is stored under our keys', () => {
    expect(asynq.server(info.host, info.pid, info.serverId)).toBe(Key);
    expect(asynq.serverWorkers(info.host, info.pid, info.serverId)).toBe(WorkersKey);
  });

  it('has workers that are read as Go reads them', () => {
    expect(Object.keys(Workers).sort()).toEqual(['id1', 'id2']);
    for (const worker of Read.ActiveWorkers) {
      const read = decodeWorkerInfo(bytesOf(Workers[worker.TaskID]!));
      expect(read).toEqual({
        host: Read.Host,
        pid: Read.PID,
        serverId: Read.ID,
        taskId: worker.TaskID,
        taskType: worker.TaskType,
        taskPayload: Buffer.from(worker.TaskPayload ?? '', 'base64'),
        queue: worker.Queue,
        startTime: Date.parse(worker.Started),
        deadline: Date.parse(worker.Deadline),
      });
      expect(decodeWorkerInfo(encodeWorkerInfo(read))).toEqual(read);
    }
  });
});

describe('a Go scheduler', () => {
  const entries = scheduler.Entries.map((hex) => decodeSchedulerEntry(bytesOf(hex)));

  it('has entries that are read as Go reads them', () => {
    expect(entries.map(({ enqueueOptions: _, ...entry }) => entry)).toEqual(
      scheduler.Read.map((entry) => ({
        id: entry.ID,
        spec: entry.Spec,
        taskType: entry.TaskType,
        taskPayload: bytesOf(entry.TaskPayload),
        nextEnqueueTime: maybe(entry.Next),
        prevEnqueueTime: maybe(entry.Prev),
      })),
    );
    const never = entries.find(({ taskType }) => taskType === 'never')!;
    expect(never).toMatchObject({ nextEnqueueTime: undefined, prevEnqueueTime: undefined });
    expect(hexOf(encodeSchedulerEntry(never))).toBe(scheduler.Entries[entries.indexOf(never)]);
  });

  it('publishes options that we read like Go', () => {
    const read = entries.map(({ enqueueOptions }) => enqueueOptions.flatMap((text) => parseOption(text) ?? []));
    expect(read.map((options) => options.map(formatOption))).toEqual(scheduler.Read.map(({ Options }) => Options));
    expect(Math.max(...read.map(({ length }) => length))).toBe(8);
  });

  it('is stored under our keys, with its history', () => {
    expect(scheduler.Key).toMatch(/^asynq:schedulers:\{.+:\d+:[-0-9a-f]{36}\}$/);
    const id = scheduler.Key.slice('asynq:schedulers:{'.length, -1);
    expect(asynq.scheduler(id)).toBe(scheduler.Key);
    const [often] = entries.filter(({ spec }) => spec === '@every 1s');
    const events = scheduler.Events[often!.id]!.map(({ TaskID, EnqueuedAt }) => ({
      taskId: TaskID,
      enqueueTime: Date.parse(EnqueuedAt),
    }));
    expect(events.length).toBeGreaterThan(0);
    expect(scheduler.History[often!.id]!.map((hex) => decodeSchedulerEnqueueEvent(bytesOf(hex)))).toEqual(events);
  });
});
