import type { Tokens } from './tokens.js';
import type { LimiterDeps } from './waitlist.js';

/** After a token was given up for another server, this one acquires none for so long. */
const YIELD_MS = 100;
/** Between two tokens that a server gives up because others have none. */
const TURN_MS = 5_000;

/** A server that is noted to wait for a token looks again after the first time, and after the second when it has waited for the third. */
const SOON_MS = 20;
const LATER_MS = 250;
const LONG_MS = 5_000;
/** It is noted again after this time. */
const NOTED_MS = 1_000;

/** Asks other servers for a token of one scope, when this one has none, and gives one up when another asks. */
export class TokenRequests {
  /** Another server has none. */
  private mustGive = false;
  private yieldsUntil = -Infinity;
  private gaveAt = -Infinity;
  /** Since when this server is noted to wait for a token, and when it was noted last. */
  private notedSince: number | undefined;
  private notedAt = 0;

  constructor(
    private readonly scope: string,
    private readonly tokens: Tokens,
    private readonly deps: Pick<LimiterDeps, 'broker' | 'clock'>,
  ) {}

  /** Whether another server asks for the next token that is spare. */
  get isAsked(): boolean {
    return this.mustGive;
  }

  /** Whether another server has its turn. */
  get yields(): boolean {
    return this.deps.clock.now() < this.yieldsUntil;
  }

  /** Milliseconds until the next look for a token, when another server is about to give one up. */
  get nextLook(): number | undefined {
    if (this.notedSince === undefined) return undefined;
    return this.deps.clock.now() < this.notedSince + LONG_MS ? SOON_MS : LATER_MS;
  }

  /** Without a token, this server asks those that have some for one. @param isWaiting whether tasks are known to wait */
  async note(isWaiting: boolean): Promise<void> {
    const { tokens, deps } = this;
    const now = deps.clock.now();
    if (tokens.count > 0 || !isWaiting) this.notedSince = undefined;
    else if (this.notedSince === undefined || now >= this.notedAt + NOTED_MS) {
      const isNoted = await deps.broker.limiting.requestToken(this.scope, tokens.owner);
      this.notedAt = now;
      if (isNoted) this.notedSince ??= now;
      else this.notedSince = undefined;
    }
  }

  /** Whether another server waits for a token. @param isWaiting as before */
  async look(isWaiting: boolean): Promise<void> {
    const { tokens, deps } = this;
    if (tokens.count === 0 || !isWaiting || deps.clock.now() < this.gaveAt + TURN_MS) return;
    const server = await deps.broker.limiting.tokenRequest(this.scope);
    this.mustGive = server !== undefined && server !== tokens.owner;
  }

  /** Whether a spare token is given up now. */
  gives(): boolean {
    if (!this.mustGive || this.tokens.spare === 0) return false;
    this.mustGive = false;
    this.gaveAt = this.deps.clock.now();
    this.yieldsUntil = this.gaveAt + YIELD_MS;
    return true;
  }
}
