import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import type { Caused } from '../links.js';
import type {
  LockPage,
  RepeatBounds,
  RepeatReplies,
  RepeatReply,
  RepeatRequest,
  StoredLock,
  UniquenessRole,
} from '../uniqueness.js';
import { type Acknowledgements, type Copies, isEnough } from './acknowledgement.js';
import type { RedisConnections } from './connection/connections.js';
import { ownKeys, scanStep } from './connection/scan.js';
import { persist } from './producer.js';
import type { RowRange } from './rows.js';
import { nanoseconds } from './scripts/arguments.js';
import { readCaused } from './scripts/caused.js';
import { type EncodedRepeats, encodeRepeats, readLocks, readRepeats } from './scripts/repeats.js';
import type { Argument } from './scripts/script-command.js';
import { SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

const RESENT = SCRIPTS.enqueueUnique.argv.indexOf('resent');
/** Steps of a scan for one page: Redis goes over some ten thousand keys, a millisecond at a time. */
const STEPS_PER_PAGE = 10;
/** A page with this many locks is not continued: they are read with the messages of their owners. */
const ENOUGH_PER_PAGE = 200;

/** What UniquenessRole needs of other roles. */
export interface UniquenessDeps {
  readonly acknowledgements: Pick<Acknowledgements, 'run' | 'requireDisk'>;
  /** Lists a queue, as RedisProducer.register. */
  register(queue: string): Promise<void> | undefined;
  /** Lists a place of links, as RedisLinks.register. */
  registerLinks(place: string): Promise<void> | undefined;
}

/** Enqueues over the connection `produce`; all else over `monitor`. */
export class RedisUniqueness implements UniquenessRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly deps: UniquenessDeps,
  ) {}

  async enqueue(
    queue: string,
    requests: readonly RepeatRequest[],
    { maxPending, acknowledge }: RepeatBounds = {},
  ): Promise<Caused & RepeatReplies> {
    if (requests.length === 0) return { replies: [], parcels: [] };
    const of = this.keyspace.queue(queue);
    const encoded = encodeRepeats(of, requests);
    const { keys } = encoded;
    if (acknowledge?.disk) await this.deps.acknowledgements.requireDisk(queue, of.pending);
    const registered = this.deps.register(queue);
    if (registered) await registered;
    const room = maxPending === undefined ? '' : String(maxPending);
    const argv = this.arguments(of, encoded, room, acknowledge ? '1' : '0');
    let copies: Copies | undefined;
    const run = async (script: 'enqueueUnique' | 'enqueueUniqueLinked'): Promise<unknown> => {
      if (!acknowledge) return this.scripts.run('produce', script, keys, argv);
      const [reply, found] = await this.deps.acknowledgements.run(script, keys, argv, acknowledge);
      copies = found;
      return reply;
    };
    const reply = await persist(async (attempt) => {
      if (attempt > 1) argv[RESENT] = requests.map(({ madeId }) => (madeId ? 'i' : 'm')).join('');
      return (await run('enqueueUnique')) ?? this.withLinks(queue, () => run('enqueueUniqueLinked'));
    });
    const [packed, parcels, ...messages] = reply as [Buffer, Buffer, ...Buffer[]];
    return {
      replies: readRepeats(requests, packed, messages),
      ...readCaused(queue, parcels),
      copies: acknowledge && copies && { ...copies, isEnough: isEnough(copies, acknowledge) },
    };
  }

  /** Those of an outbox, once; or the highest number, when the first row was brought before: see RowsRole. */
  async enqueueRows(
    queue: string,
    requests: readonly RepeatRequest[],
    rows: RowRange,
  ): Promise<(Caused & { readonly statuses: readonly RepeatReply[] }) | number> {
    const of = this.keyspace.queue(queue);
    const encoded = encodeRepeats(of, requests);
    await this.deps.register(queue);
    const keys = [...encoded.keys, of.senders];
    const argv = this.arguments(of, encoded, '', '0').concat(rows);
    const run = (script: 'enqueueUniqueRows' | 'enqueueUniqueLinked') =>
      this.scripts.run('produce', script, keys, argv);
    // Sent again, it finds what the first call has noted.
    const reply = await persist(
      async () => (await run('enqueueUniqueRows')) ?? this.withLinks(queue, () => run('enqueueUniqueLinked')),
    );
    if (!Array.isArray(reply)) return Number(reply);
    const [packed, parcels, ...messages] = reply as [Buffer, Buffer, ...Buffer[]];
    const statuses = readRepeats(requests, packed, messages) as RepeatReply[];
    return { statuses, ...readCaused(queue, parcels) };
  }

  async release(queue: string, lock: string, id: string): Promise<boolean> {
    if (!lock.startsWith(this.keyspace.queue(queue).base)) return false; // of another slot: not ours
    return (await this.scripts.run('monitor', 'releaseLock', [lock], [id])) === 1;
  }

  async findSuperseded(queue: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    const of = this.keyspace.queue(queue);
    const keys = ids.map((id) => of.task(id));
    const found = (await this.scripts.run('monitor', 'findSuperseded', keys, [])) as Buffer[];
    return found.map((id) => (id.length === 0 ? undefined : id.toString()));
  }

  async describe(queue: string, locks: readonly string[]): Promise<readonly StoredLock[]> {
    const { base, taskPrefix } = this.keyspace.queue(queue);
    const own = locks.filter((lock) => lock.startsWith(base));
    if (own.length === 0) return [];
    return readLocks(own, (await this.scripts.run('monitor', 'describeLocks', own, [taskPrefix])) as Buffer);
  }

  async list(queue: string, cursor: string | undefined): Promise<LockPage> {
    const keys = this.keyspace.queue(queue);
    const found = new Set<string>();
    let at: string | undefined = cursor ?? '0';
    for (let step = 0; step < STEPS_PER_PAGE && at !== undefined && found.size < ENOUGH_PER_PAGE; step++) {
      const [next, names] = await scanStep(this.connections, keys.lockPrefix, at);
      for (const name of names) found.add(name);
      at = next;
    }
    const own = await ownKeys(this.connections, this.keyspace, keys, [...found]);
    return { locks: await this.describe(queue, own), cursor: at };
  }

  /** @param room see enqueue-unique.lua, as `copied` */
  private arguments(
    { taskPrefix }: QueueKeys,
    { policies, rest }: EncodedRepeats,
    room: string,
    copied: '0' | '1',
  ): Argument[] {
    const now = this.clock.now();
    const times = [taskPrefix, String(floorSeconds(now)), nanoseconds(now)];
    const first: Argument[] = [...times, '0', policies, this.keyspace.cancel, room, copied];
    return first.concat(rest);
  }

  /** A task that follows an active one waits for it. */
  private async withLinks(queue: string, run: () => Promise<unknown>): Promise<unknown> {
    await this.deps.registerLinks(queue);
    return run();
  }
}
