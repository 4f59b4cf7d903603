import type { Clock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import {
  type CheckpointsRole,
  MAX_SIGNALS,
  type SignalStatus,
  type StepCall,
  type StepField,
  type StepNames,
  type StepValue,
  type StoredSteps,
} from '../checkpoints.js';
import type { Lease } from '../consumer.js';
import type { Caused } from '../links.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import type { FieldWrites } from './field-writes.js';
import type { LeaseScores } from './lease-scores.js';
import { floorSeconds } from '../../clock.js';
import { nanoseconds } from './scripts/arguments.js';
import { readCaused } from './scripts/caused.js';
import { encodeLinkedMessage, taskWithLinks } from './scripts/linked-requests.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';
import { checkpointField, fieldOf, readNames, readSteps } from './scripts/step-fields.js';

/** The name of its answer, the field and the value of its checkpoint, its queue, JSON of its task or its id, and its message. */
function encodeCall({ step, answer, checkpoint, queue, id, request }: StepCall): Argument[] {
  const task = request ? taskWithLinks(request, undefined) : { id };
  const message = request ? encodeLinkedMessage(request.message) : '';
  return [answer, checkpointField(step), checkpoint, queue, JSON.stringify(task), message];
}

/** What signal.lua returns. */
const STATUSES: readonly SignalStatus[] = ['missing', 'stored', 'over', 'full'];

interface CheckpointsDeps {
  readonly scores: LeaseScores;
  readonly writes: FieldWrites;
  /** Lists a queue, and its links. */
  readonly list: (queue: string) => readonly (Promise<void> | undefined)[];
}
/** One call reads so many values, and fewer when they have more bytes together. */
const VALUES_PER_CALL = 500;
const BYTES_PER_CALL = 4_000_000;

export class RedisCheckpoints implements CheckpointsRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly deps: CheckpointsDeps,
  ) {}

  async read(queue: string, id: string): Promise<StoredSteps> {
    const key = this.keyspace.queue(queue).task(id);
    const read = (client: RedisClient) => client.callBuffer('HGETALL', key) as Promise<Buffer[]>;
    return readSteps(await this.connections.run('consume', 'HGETALL', read));
  }

  async list(queue: string, id: string): Promise<StepNames> {
    const key = this.keyspace.queue(queue).task(id);
    return readNames(await this.connections.run('monitor', 'HKEYS', (client) => client.hkeys(key)));
  }

  async view(
    queue: string,
    id: string,
    fields: readonly StepField[],
    most: number,
  ): Promise<(StepValue | undefined)[]> {
    const key = this.keyspace.queue(queue).task(id);
    const names = fields.map(fieldOf);
    const values: (StepValue | undefined)[] = [];
    while (values.length < names.length) {
      const next = names.slice(values.length, values.length + VALUES_PER_CALL);
      const argv = [String(most), String(BYTES_PER_CALL), ...next];
      const reply = (await this.scripts.run('monitor', 'readSteps', [key], argv)) as (Buffer | number)[];
      for (let i = 0; i < reply.length; i += 2) {
        const size = reply[i + 1] as number;
        values.push(size < 0 ? undefined : { bytes: reply[i] as Buffer, size });
      }
    }
    return values;
  }

  write(lease: Lease, name: string, checkpoint: Buffer): Promise<boolean> {
    return this.deps.writes.write(lease, checkpointField(name), checkpoint);
  }

  async signal(queue: string, id: string, name: string, payload: Buffer): Promise<SignalStatus> {
    const keys = this.keyspace.queue(queue);
    const argv = [id, name, payload, nanoseconds(this.clock.now()), String(MAX_SIGNALS)];
    const hash = [keys.task(id), keys.scheduled, keys.pending];
    return STATUSES[(await this.scripts.run('produce', 'signal', hash, argv)) as number]!;
  }

  async call(lease: Lease, calls: readonly StepCall[]): Promise<Caused | undefined> {
    const { queue, id } = lease;
    const now = this.clock.now();
    const keys = this.keyspace.queue(queue);
    const encoded = calls.flatMap(encodeCall); // throws before anything is written
    const { scores, list } = this.deps;
    await Promise.all([...new Set([queue, ...calls.map((call) => call.queue)])].flatMap(list));
    const fences = scores.fences([lease]);
    const argv = [keys.taskPrefix, String(floorSeconds(now)), nanoseconds(now), id, ...fences, ...encoded];
    const scriptKeys = [...queueKeys('enqueueLinked', keys), keys.lease, keys.task(id)];
    const reply = await this.scripts.run('consume', 'callTasks', scriptKeys, argv);
    return reply === 0 ? undefined : readCaused(queue, reply as Buffer);
  }
}
