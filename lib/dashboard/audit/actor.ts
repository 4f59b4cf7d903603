import type { DashboardRequest } from '../access.js';

/** Who sends a request, for the audit trail. Its parameter can be given the platform's type, or `DashboardRequest & { user?: User }`. */
export type DashboardActor =
  // As a method, so that a function of a narrower request fits.
  { name(request: DashboardRequest): string | undefined | Promise<string | undefined> }['name'];

/** What names a user, the most telling first. */
const NAMES = ['username', 'email', 'preferred_username', 'name', 'sub', 'id', 'userId'] as const;

const MAX_ACTOR_LENGTH = 200;

interface Sender {
  readonly user?: unknown;
  /** Express' and Fastify's: the address of the peer, or, where the application trusts its proxy, the address that one names. */
  readonly ip?: unknown;
  readonly socket?: { readonly remoteAddress?: unknown };
}

/** By `request.user`, else by the address. */
export function nameOfSender({ user, ip, socket }: Sender): string {
  const name = nameOfUser(user);
  if (name !== undefined) return shorten(name);
  const address = ip ?? socket?.remoteAddress;
  return typeof address === 'string' && address !== '' ? address : 'unknown';
}

function nameOfUser(user: unknown): string | undefined {
  if (typeof user !== 'object' || user === null) return textOf(user);
  const fields = user as Readonly<Record<string, unknown>>;
  return NAMES.map((name) => textOf(fields[name])).find((name) => name !== undefined);
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/**
 * What the option says, or the default where it says nothing. It is never the reason why an action fails.
 *
 * @param onFailure the option threw
 */
export async function actorOf(
  option: DashboardActor | undefined,
  request: unknown,
  onFailure: (error: unknown) => void,
): Promise<string> {
  try {
    const name = textOf(await option?.(request as never));
    if (name !== undefined) return shorten(name);
  } catch (error) {
    onFailure(error);
  }
  return nameOfSender(request as Sender);
}

const shorten = (name: string): string =>
  name.length > MAX_ACTOR_LENGTH ? `${name.slice(0, MAX_ACTOR_LENGTH)}…` : name;
