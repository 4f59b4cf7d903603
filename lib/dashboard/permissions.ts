import { createHash } from 'node:crypto';
import type { ErrorClass } from '../errors.js';
import { describe, nearest, rejectUnknownKeys, requireObject } from '../validation.js';

/** From the least to the most. */
export const DASHBOARD_ROLES = ['view', 'act', 'destroy'] as const;

/**
 * `view`: read. `act`: also see the state of Redis, pause, run, archive, cancel, reschedule, edit,
 * clone, enqueue. `destroy`: also delete.
 */
export type DashboardRole = (typeof DASHBOARD_ROLES)[number];

/** A role, or `none`, which hides the queue completely. */
export type DashboardQueueRole = DashboardRole | 'none';

/** Permissions by queue. */
export interface DashboardQueueRoles {
  /**
   * Roles by queue name. A name that ends with `*` stands for all queues with that prefix. An exact
   * name wins over a prefix, and a longer prefix over a shorter one.
   */
  readonly queues: Readonly<Record<string, DashboardQueueRole>>;
  /**
   * The role in all other queues, and for what belongs to no queue, such as the state of Redis.
   * Default `none`.
   */
  readonly default?: DashboardQueueRole;
}

/** One role for everything, or roles by queue. */
export type DashboardPermission = DashboardRole | DashboardQueueRoles;

const QUEUE_ROLES: readonly string[] = [...DASHBOARD_ROLES, 'none'];
const KEYS: readonly (keyof DashboardQueueRoles)[] = ['queues', 'default'];

export const isRole = (value: unknown): value is DashboardRole => DASHBOARD_ROLES.some((role) => role === value);

const rankOf = (role: DashboardRole | undefined): number => (role === undefined ? -1 : DASHBOARD_ROLES.indexOf(role));

export const mayDo = (has: DashboardRole | undefined, needed: DashboardRole): boolean => rankOf(has) >= rankOf(needed);

interface Prefix {
  readonly begins: string;
  readonly role: DashboardRole | undefined;
}

/**
 * What the sender of a request may do. A role of `undefined` allows nothing and hides the queue.
 */
export class Permissions {
  /** The same text for equal permissions; short, however many queues they name. */
  readonly key: string;

  private constructor(
    private readonly byName: ReadonlyMap<string, DashboardRole | undefined>,
    /** The longest prefix first. */
    private readonly byPrefix: readonly Prefix[],
    /** The role in queues that are not named, and for what belongs to no queue. */
    readonly general: DashboardRole | undefined,
  ) {
    const named = [...byName, ...byPrefix.map(({ begins, role }) => [`${begins}*`, role] as const)];
    this.key = named.length === 0 ? String(general) : digest([named.sort(byText), general ?? null]);
  }

  /** @param what the name of the value, for messages @throws `Failure` naming what is wrong */
  static of(permission: unknown, what: string, Failure: ErrorClass): Permissions {
    if (isRole(permission)) return new Permissions(new Map(), [], permission);
    const { queues, default: others = 'none' } = requireObject(permission, what, Failure) as DashboardQueueRoles;
    rejectUnknownKeys(permission as object, KEYS, `key of ${what}:`, Failure);
    requireObject(queues, `${what}.queues`, Failure);
    const byName = new Map<string, DashboardRole | undefined>();
    const byPrefix: Prefix[] = [];
    for (const [name, given] of Object.entries(queues)) {
      const role = checkQueueRole(given, `${what}.queues[${describe(name)}]`, Failure);
      if (name.endsWith('*')) byPrefix.push({ begins: name.slice(0, -1), role });
      else byName.set(name, role);
    }
    byPrefix.sort((a, b) => b.begins.length - a.begins.length);
    return new Permissions(byName, byPrefix, checkQueueRole(others, `${what}.default`, Failure));
  }

  roleIn(queue: string): DashboardRole | undefined {
    if (this.byName.has(queue)) return this.byName.get(queue);
    const prefix = this.byPrefix.find(({ begins }) => queue.startsWith(begins));
    return prefix ? prefix.role : this.general;
  }

  maySee(queue: string): boolean {
    return this.roleIn(queue) !== undefined;
  }

  may(queue: string, needed: DashboardRole): boolean {
    return mayDo(this.roleIn(queue), needed);
  }

  /** The highest role in any queue; `undefined`: no access. */
  get greatest(): DashboardRole | undefined {
    return this.roles.reduce((most, role) => (rankOf(role) > rankOf(most) ? role : most));
  }

  /** Whether the role is reached in every possible queue. */
  mayEverywhere(needed: DashboardRole): boolean {
    return this.roles.every((role) => mayDo(role, needed));
  }

  /** The roles by name, as given, without hidden queues. */
  get byQueue(): Readonly<Record<string, DashboardRole>> {
    const all = [...this.byName, ...this.byPrefix.map(({ begins, role }) => [`${begins}*`, role] as const)];
    return Object.fromEntries(all.filter((entry): entry is [string, DashboardRole] => entry[1] !== undefined));
  }

  private get roles(): readonly (DashboardRole | undefined)[] {
    return [this.general, ...this.byName.values(), ...this.byPrefix.map(({ role }) => role)];
  }
}

type Named = readonly [name: string, role: DashboardRole | undefined];

const byText = ([a]: Named, [b]: Named): number => (a < b ? -1 : a > b ? 1 : 0);

const digest = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('base64');

function checkQueueRole(given: unknown, what: string, Failure: ErrorClass): DashboardRole | undefined {
  if (isRole(given)) return given;
  if (given === 'none') return undefined;
  const near = typeof given === 'string' ? nearest(given, QUEUE_ROLES) : undefined;
  const remedy = near ? `did you mean "${near}"?` : 'it must be "view", "act", "destroy" or "none"';
  throw new Failure(`${what} is ${describe(given)}; ${remedy}`);
}
