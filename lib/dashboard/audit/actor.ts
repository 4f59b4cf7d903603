import type { DashboardRequest } from '../access.js';

/**
 * Names the sender of a request for the audit trail. Its parameter may have the platform's type, or
 * `DashboardRequest & { user?: User }`.
 */
export type DashboardActor =
  // A method, so that a function of a narrower request type is assignable.
  { name(request: DashboardRequest): string | undefined | Promise<string | undefined> }['name'];

/** The fields that name a user, the best one first. */
const NAMES = ['username', 'email', 'preferred_username', 'name', 'sub', 'id', 'userId'] as const;

const MAX_ACTOR_LENGTH = 200;

interface Sender {
  readonly user?: unknown;
  /**
   * The address of the peer, or, if the application trusts its proxy, the address that the proxy
   * reports (Express and Fastify).
   */
  readonly ip?: unknown;
  readonly socket?: { readonly remoteAddress?: unknown };
}

/** The name of `request.user`, else the address. */
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
 * The name that the option returns, else the default. An error of the option never fails the
 * action.
 *
 * @param onFailure is called when the option throws
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
