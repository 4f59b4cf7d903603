import { randomBytes } from 'node:crypto';
import { LEASE_SECONDS, type Broker } from '../../broker/broker.js';
import { type Clock, floorSeconds } from '../../clock.js';
import type { ActiveTask } from './active-task.js';

/** Tokens are extended when they are this old; they end LEASE_SECONDS after that. */
const TOKEN_RENEWAL_MS = 10_000;
/** A token that ends sooner than this is not used for another task: clocks differ. */
const MIN_LEFT_SECONDS = 10;

/** Of one more time in an average. */
export const WEIGHT = 0.1;

interface Token {
  /** In Redis. */
  name: string;
  /** What it is called instead once a call has renamed it that is under way, or got no reply. */
  next?: string | undefined;
  /** When its task got it, by `Clock.elapsed`. */
  since: number;
  /** Unix seconds. */
  until: number;
}

/**
 * The tokens of one scope that this server has: each lets one task run. When the task ends, its token is spare: for the next task here,
 * without a call, or to be given back. Names are never used twice, so nobody else can take a token for his. A token is named after the
 * task for which it was acquired, and later, when it is extended, after the one that runs then.
 */
export class Tokens {
  /** Names this server where it waits for a token. */
  readonly owner = randomBytes(6).toString('hex');
  private readonly byTask = new Map<ActiveTask, Token>();
  private spareTokens: Token[] = [];
  /** Not needed, but perhaps still taken: the reply was lost. */
  private strays: Token[] = [];
  private named = 0;
  private renewedAt = -Infinity;
  /** How long tasks have had one, in milliseconds: an average of the last. */
  heldFor = 0;

  constructor(
    private readonly scope: string,
    private readonly max: number,
    private readonly deps: { readonly broker: Pick<Broker, 'limiting'>; readonly clock: Clock },
  ) {}

  /** Those without a task. */
  get spare(): number {
    return this.spareTokens.length;
  }

  get count(): number {
    return this.byTask.size + this.spareTokens.length;
  }

  get isUsed(): boolean {
    return this.count + this.strays.length > 0;
  }

  has(task: ActiveTask): boolean {
    return this.byTask.has(task);
  }

  /** Gives the task a spare token, if there is one. One that may have ended meanwhile, as this process stood still, is not used any more. */
  give(task: ActiveTask): boolean {
    for (let token = this.spareTokens.pop(); token; token = this.spareTokens.pop()) {
      if (!this.isGood(token)) {
        this.strays.push(token);
        continue;
      }
      token.since = this.deps.clock.elapsed();
      this.byTask.set(task, token);
      return true;
    }
    return false;
  }

  /** The task's token is spare again. One that may have ended meanwhile is not used any more. */
  free(task: ActiveTask): void {
    const token = this.byTask.get(task);
    if (!token) return;
    this.byTask.delete(task);
    this.heldFor += (this.deps.clock.elapsed() - token.since - this.heldFor) * WEIGHT;
    (this.isGood(token) ? this.spareTokens : this.strays).push(token);
  }

  /** Acquires a token for each task, as far as there are some. */
  async acquire(tasks: readonly ActiveTask[]): Promise<void> {
    const tokens = await this.take(tasks.map((task) => this.newName(task)));
    tokens.forEach((token, index) => token && this.byTask.set(tasks[index]!, token));
  }

  /** Acquires up to `count` spare tokens; returns how many. */
  async seek(count: number): Promise<number> {
    const tokens = (await this.take(Array.from({ length: count }, () => this.newName()))).filter(
      (token) => token !== undefined,
    );
    this.spareTokens.push(...tokens);
    return tokens.length;
  }

  /** Gives spare tokens back, and those that are left of calls without a reply. */
  async release(count: number): Promise<void> {
    this.strays.push(...this.spareTokens.splice(Math.max(0, this.spareTokens.length - count)));
    const now = floorSeconds(this.deps.clock.now());
    const tokens = this.strays.filter(({ until }) => until >= now);
    this.strays = [];
    if (tokens.length === 0) return;
    try {
      const names = tokens.flatMap(({ name, next }) => (next === undefined ? name : [name, next]));
      await this.deps.broker.limiting.releaseTokens(this.scope, names);
    } catch (error) {
      this.strays.push(...tokens);
      throw error;
    }
  }

  /** Extends them, and names them after their tasks. One that is gone lets no further task run. */
  async renew(): Promise<void> {
    if (this.strays.length > 0) await this.release(0);
    await this.rename();
    const { clock, broker } = this.deps;
    const now = clock.now();
    // The clock may have been set back.
    const isFresh = now >= this.renewedAt && now < this.renewedAt + TOKEN_RENEWAL_MS;
    if (this.count === 0 || isFresh) return;
    const tokens = [...this.byTask.values(), ...this.spareTokens];
    const until = this.end();
    const names = tokens.map(({ name }) => name);
    const got = await broker.limiting.acquireTokens(this.scope, this.max, until, names);
    const gone = new Set<Token>();
    tokens.forEach((token, index) => (got[index] ? (token.until = until) : gone.add(token)));
    if (gone.size > 0) this.forget(gone);
    this.renewedAt = now;
  }

  private async rename(): Promise<void> {
    const tokens: Token[] = [];
    for (const [task, token] of this.byTask) {
      if (token.next === undefined && token.name.endsWith(holderOf(task))) continue;
      token.next ??= this.newName(task);
      tokens.push(token);
    }
    if (tokens.length === 0) return;
    const until = this.end();
    const moves = tokens.map(({ name, next }) => ({ from: name, to: next! }));
    const moved = await this.deps.broker.limiting.moveTokens(this.scope, until, moves);
    const owned = new Set([...this.byTask.values(), ...this.spareTokens]);
    tokens.forEach((token, index) => {
      token.name = token.next!; // one that has ended is acquired again, if it can be
      token.next = undefined;
      if (moved[index]) token.until = until;
      if (moved[index] && !owned.has(token)) this.strays.push(token); // it was given back by its old name
    });
  }

  private forget(gone: ReadonlySet<Token>): void {
    this.spareTokens = this.spareTokens.filter((token) => !gone.has(token));
    for (const [task, token] of this.byTask) if (gone.has(token)) this.byTask.delete(task);
  }

  private async take(names: readonly string[]): Promise<(Token | undefined)[]> {
    // As this process stood still, tokens of tasks that run may have ended: each has the first right to one.
    if (this.hasEnded) await this.renew();
    const until = this.end();
    const since = this.deps.clock.elapsed();
    const tokens = names.map((name) => ({ name, until, since }));
    try {
      const got = await this.deps.broker.limiting.acquireTokens(this.scope, this.max, until, names);
      return tokens.map((token, index) => (got[index] ? this.inTime(token) : undefined));
    } catch (error) {
      this.strays.push(...tokens);
      throw error;
    }
  }

  /** The reply may have come late. */
  private inTime(token: Token): Token | undefined {
    if (this.isGood(token)) return token;
    this.strays.push(token);
    return undefined;
  }

  private get hasEnded(): boolean {
    for (const token of this.byTask.values()) if (!this.isGood(token)) return true;
    return false;
  }

  private isGood({ until }: Token): boolean {
    return floorSeconds(this.deps.clock.now()) + MIN_LEFT_SECONDS <= until;
  }

  private newName(task?: ActiveTask): string {
    return `${this.owner}.${this.named++}${task ? holderOf(task) : ''}`;
  }

  private end(): number {
    return floorSeconds(this.deps.clock.now()) + LEASE_SECONDS;
  }
}

const holderOf = ({ queue, id }: ActiveTask): string => `{${queue}}:${id}`;
