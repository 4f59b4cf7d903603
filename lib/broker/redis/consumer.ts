import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { Archives } from '../archives.js';
import {
  isForfeit,
  type ClaimedHeld,
  type ConsumerRole,
  type ExchangeReply,
  type ExchangeRequest,
  type Lease,
  LEASE_SECONDS,
  type QueueLimits,
  type Settlement,
  type SettleStatus,
} from '../broker.js';
import type { FairQueues } from '../fair-queues.js';
import type { Caused } from '../links.js';
import { archiveLimits } from './scripts/archive-limits.js';
import { nanoseconds, requireSeconds } from './scripts/arguments.js';
import { wasSent } from './connection/broker-error.js';
import { LeasedLinks } from './scripts/leased-links.js';
import { type AlsoRead, LeasedTasks } from './scripts/leased-tasks.js';
import { LeaseScores } from './lease-scores.js';
import { PackedReader } from './scripts/packed-reader.js';
import { packTexts } from './scripts/packed-texts.js';
import { joined, readCaused } from './scripts/caused.js';
import { ExchangeKeys, fairArguments, fairKeys, queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';
import type { FieldWrites } from './field-writes.js';
import type { StoredResults } from './stored-results.js';
import { encodeSettledMembers } from './scripts/settled-members.js';
import { encodeSettledSteps } from './scripts/settled-steps.js';
import { encodeSettlements } from './scripts/settlements.js';

/**
 * More tasks than any server claims at once. It keeps a wrong number from moving a whole queue into
 * one process.
 */
const MOST_TAKEN = 10_000;

/** Leases that one call extends. */
const LEASES_PER_CALL = 1000;

/**
 * An archiving checks this many archived tasks more than it has added; the janitor does the rest.
 */
const TRIMMED_AT_ONCE = 100;

const PLAIN_SCRIPTS = ['exchange', 'exchangeLinked'] as const;
const FAIR_SCRIPTS = ['exchangeFair', 'exchangeFairLinked'] as const;

/** A queue that had links is taken to have some for so long. */
const LINKED_MS = 60_000;

/** What other roles of a broker know. */
export interface ConsumerState {
  readonly archives: Archives;
  readonly fairQueues: FairQueues;
  readonly stored: StoredResults;
  readonly writes: FieldWrites;
}

/**
 * Claims, settles, extends. All calls go over one connection (`consume`), and so arrive in their
 * order: an extension cannot overtake an earlier settlement.
 */
export class RedisConsumer implements ConsumerRole {
  private readonly keys: ExchangeKeys;
  /** Until when a queue is taken to have links, in milliseconds since the epoch. */
  private readonly linkedUntil = new Map<string, number>();
  /** Leases with a settlement that was sent and got no reply. */
  private readonly unanswered = new WeakSet<Lease>();

  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly shared: ConsumerState,
    private readonly scores: LeaseScores,
  ) {
    this.keys = new ExchangeKeys(keyspace);
  }

  async exchange(
    queue: string,
    { settle, take, limits, aside, held, ahead = 0, allowance = 0, since = false, bare = false }: ExchangeRequest,
  ): Promise<ExchangeReply> {
    const now = this.clock.now();
    const expiresAt = floorSeconds(now) + LEASE_SECONDS;
    const own = this.keyspace.queue(queue);
    const batch = encodeSettlements(settle, own);
    const fences = this.scores.fences(batch.leases);
    const isFair = this.shared.fairQueues.has(queue);
    const types = take > 0 && aside && !isFair ? aside : NO_TYPES;
    const waitlists = held && !isFair ? held : NO_WAITLISTS;
    const argv = exchangeArguments(own.taskPrefix, now, expiresAt, take, batch.leases.length, [
      types.size + waitlists.size > 0
        ? limitsAndNames(limits, allowance, types, waitlists, ahead)
        : limits && take > 0
          ? limitsText(limits, allowance)
          : '',
      since || bare ? String(Number(since) + 2 * Number(bare)) : '',
      batch.results.length > 0 ? packTexts(batch.results) : '',
      ...fences,
      ...batch.specials,
    ]);
    let keys = this.keys.of(queue, now, limits?.window ?? 0).concat(batch.taskKeys, batch.named);
    if (isFair) {
      keys = keys.concat(fairKeys(own));
      argv.push(...fairArguments(own, allowance));
    }
    const [unlinked, linked] = isFair ? FAIR_SCRIPTS : PLAIN_SCRIPTS;
    const run = (script: typeof unlinked | typeof linked): Promise<unknown> =>
      this.scripts
        .run(
          'consume',
          script,
          keys,
          script === linked ? argv.concat(encodeSettledSteps(settle, now), encodeSettledMembers(settle)) : argv,
        )
        .catch((error: unknown) => {
          if (wasSent(error)) for (const lease of batch.leases) this.unanswered.add(lease);
          throw error;
        });
    const answer = run(now < (this.linkedUntil.get(queue) ?? 0) ? linked : unlinked);
    const trimming = batch.archivedIds.length > 0 ? this.trim(queue, batch.archivedIds, now) : undefined;
    const replied = ((await answer) ?? (await run(linked))) as Buffer | [Buffer, Buffer, (Buffer | null)[], Buffer];
    const [packed, batches, links, caused] = Array.isArray(replied) ? replied : [replied];
    if (links) this.linkedUntil.set(queue, now + LINKED_MS);
    const reply = new PackedReader(packed);
    if (trimming) await trimming;
    const opensIn = isFair ? reply.count() : 0;
    const backlog = reply.count();
    const limitedFor = reply.count();
    const lost = Array.from({ length: reply.count() }, () => reply.count());
    const settled = new Array<SettleStatus>(settle.length).fill('settled');
    let further: Caused = { parcels: [] };
    if (lost.length > 0) {
      further = await this.markLost(queue, settle, lost, fences, settled);
      for (const index of lost) if (this.wasStored(settle[index - 1]!.lease, now)) settled[index - 1] = 'settled';
    }
    if (batch.hasResults) this.shared.stored.settled(settle, settled);
    const taken = new LeasedTasks(queue, links && new LeasedLinks(queue, batches!, links));
    readTasks(taken, expiresAt, reply, { since, bare });
    const lists = types.size + waitlists.size > 0 && reply.hasNextList;
    const putAside = lists ? readAside(reply, types) : undefined;
    const claimed = lists && waitlists.size > 0 ? readHeld(reply, waitlists) : undefined;
    const { tasks, damaged } = taken;
    const answered = {
      settled,
      tasks,
      damaged,
      backlog,
      limitedFor,
      ...(isFair && { opensIn }),
      ...(allowance > 0 && { countedAt: Math.floor(now) + allowance }),
      ...(putAside && { aside: putAside }),
      ...(claimed && { held: claimed }),
    };
    return caused ? { ...answered, ...joined(readCaused(queue, caused), further) } : answered;
  }

  async extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]> {
    const expiry = requireSeconds(expiresAt, 'the new end of the leases');
    const chunks: Promise<boolean[]>[] = [];
    for (let start = 0; start < leases.length; start += LEASES_PER_CALL) {
      chunks.push(this.extendChunk(queue, leases.slice(start, start + LEASES_PER_CALL), expiry));
    }
    return (await Promise.all(chunks)).flat();
  }

  writeResult(lease: Lease, result: Buffer): Promise<boolean> {
    return this.shared.writes.write(lease, 'result', result);
  }

  private async extendChunk(queue: string, leases: readonly Lease[], expiry: string): Promise<boolean[]> {
    const fences = this.scores.fences(leases);
    const expiresAt = Number(expiry);
    const undo = leases.map((lease) => this.scores.beginRenewal(lease, expiresAt));
    const argv = [expiry, String(leases.length), ...leases.map(({ id }) => id), ...fences];
    const keys = queueKeys('extendLeases', this.keyspace.queue(queue));
    const answer = this.scripts.run('consume', 'extendLeases', keys, argv).catch((error: unknown) => {
      if (!wasSent(error)) undo.forEach((takeBack) => takeBack());
      throw error;
    });
    const lost = new Set((await answer) as number[]);
    return leases.map((lease, index) => {
      const kept = !lost.has(index + 1);
      this.scores.endRenewal(lease, expiresAt, kept);
      return kept;
    });
  }

  /**
   * A lease may be extended while its settlement is on the way. A delayed settlement (a redirection
   * in a cluster, a script sent again) then carries an old score. What was lost by such a score is
   * sent again; if that fails it stays lost, and the claimed tasks are kept.
   *
   * @returns what that call has caused
   */
  private async markLost(
    queue: string,
    settle: readonly Settlement[],
    lost: readonly number[],
    fences: readonly string[],
    settled: SettleStatus[],
  ): Promise<Caused> {
    for (const index of lost) settled[index - 1] = 'lost';
    if (this.scores.fences(settle.map(({ lease }) => lease)).join() === fences.join()) return { parcels: [] };
    const request = { settle: lost.map((index) => settle[index - 1]!), take: 0 };
    const again = await this.exchange(queue, request).catch(() => undefined);
    lost.forEach((index, at) => (settled[index - 1] = again?.settled[at] ?? 'lost'));
    return { parcels: again?.parcels ?? [], news: again?.news ?? [] };
  }

  /** Only an earlier call without a reply can have taken this lease. */
  private wasStored(lease: Lease, now: number): boolean {
    return this.unanswered.has(lease) && !isForfeit(lease, now);
  }

  /** Sent right after the archiving. Its failure is ignored: the janitor trims too. */
  private async trim(queue: string, spared: readonly string[], now: number): Promise<void> {
    const keys = this.keyspace.queue(queue);
    const limit = String(TRIMMED_AT_ONCE + spared.length);
    const argv = [keys.taskPrefix, ...archiveLimits(this.shared.archives.of(queue), now), limit, ...spared];
    await this.scripts.run('consume', 'trimArchived', queueKeys('trimArchived', keys), argv).catch(() => undefined);
  }
}

function exchangeArguments(
  taskPrefix: string,
  now: number,
  expiresAt: number,
  take: number,
  count: number,
  further: readonly Argument[],
): Argument[] {
  const argv: Argument[] = [
    taskPrefix,
    String(floorSeconds(now)),
    nanoseconds(now),
    String(expiresAt),
    take > 0 ? String(Math.min(Math.floor(take), MOST_TAKEN)) : '0',
    String(count),
  ];
  return argv.concat(further);
}

const NO_TYPES: ReadonlyMap<string, string> = new Map();
const NO_WAITLISTS: ReadonlyMap<string, number> = new Map();

/** As exchange.lua takes them in one argument. */
const limitsAndNames = (
  limits: QueueLimits | undefined,
  allowance: number,
  types: ReadonlyMap<string, string>,
  waitlists: ReadonlyMap<string, number>,
  ahead: number,
): Buffer =>
  Buffer.concat([
    Buffer.from(`${limits ? limitsText(limits, allowance) : '0 0 1 0'} `),
    packTexts([...types].flat()),
    ...(waitlists.size > 0 ? [packTexts([ahead, ...[...waitlists].flat()].map(String))] : []),
  ]);

/** `undefined` when none was put aside, and only waitlists have a list. */
function readAside(reply: PackedReader, types: ReadonlyMap<string, string>): ReadonlyMap<string, number> | undefined {
  reply.nextList();
  return reply.more() ? new Map([...types.keys()].map((type) => [type, reply.count()])) : undefined;
}

function readHeld(reply: PackedReader, waitlists: ReadonlyMap<string, number>): ReadonlyMap<string, ClaimedHeld> {
  reply.nextList();
  return new Map([...waitlists.keys()].map((name) => [name, { claimed: reply.count(), left: reply.count() }]));
}

const limitsText = ({ active, rate, window }: QueueLimits, allowance: number): string =>
  `${active} ${rate} ${window} ${allowance}`;

function readTasks(taken: LeasedTasks, expiresAt: number, reader: PackedReader, also: AlsoRead): void {
  while (reader.more()) taken.add(reader.text(), expiresAt, reader, also);
}
