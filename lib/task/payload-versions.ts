import { types } from 'node:util';
import { InvalidTaskError } from '../errors.js';
import { requireFunction, requireInteger } from '../validation.js';
import { PAYLOAD_VERSION_HEADER } from '../wire/payload-version.js';

/** How payloads of older deploys are read, and those of newer ones left alone. */
export interface PayloadVersions<Received = unknown> {
  /**
   * The version of the payload: raise it when its shape changes, and give `upgrade`. It travels in the
   * header `asynq-payload-version`, from 2 on. A task with a greater version than its handler knows
   * waits for a server that knows it, and uses up no retry. Default 1.
   */
  version?: number;
  /**
   * Makes of the payload of an older version what handlers get now. Called where the task runs, with
   * what the codec has decoded; `from` is at least 1. Not asynchronous. What it throws archives the
   * task, as a payload that cannot be decoded does. Default: none; a version from 2 on needs it.
   */
  upgrade?: (payload: unknown, from: number) => Received;
}

/** Versions after all checks; `undefined`: version 1, which is as if there were none. */
export interface ReadVersions {
  readonly version: number;
  readonly upgrade: (payload: unknown, from: number) => unknown;
}

/** @param what as in `task "x"` @throws InvalidTaskError */
export function readVersions({ version = 1, upgrade }: PayloadVersions, what: string): ReadVersions | undefined {
  requireInteger(version, `version of ${what}`, InvalidTaskError, { least: 1, most: 999_999_999_999_999 });
  if (upgrade !== undefined) requireFunction(upgrade, `upgrade of ${what}`, InvalidTaskError);
  if (version === 1) return undefined;
  if (upgrade) return { version, upgrade };
  throw new InvalidTaskError(
    `${what} has version ${version} and no upgrade; give upgrade: (payload, from) => … for the payloads of older versions`,
  );
}

/** @throws TypeError when the upgrade is asynchronous; else what it throws */
export function upgraded({ upgrade }: ReadVersions, payload: unknown, from: number): unknown {
  const made = upgrade(payload, from);
  if (!types.isPromise(made)) return made;
  made.catch(() => undefined);
  throw new TypeError('upgrade returned a promise; it must return the payload at once');
}

/**
 * Adds the version to the headers of a task.
 *
 * @throws InvalidTaskError when they name another one
 */
export function withVersion(
  headers: Readonly<Record<string, string>> | undefined,
  versions: ReadVersions | undefined,
  what: string,
): Readonly<Record<string, string>> | undefined {
  const own = String(versions?.version ?? 1);
  const given = headers?.[PAYLOAD_VERSION_HEADER] ?? own;
  if (given !== own) {
    throw new InvalidTaskError(
      `header ${PAYLOAD_VERSION_HEADER} of ${what} is "${given}", and its definition has version ${own}; ` +
        'leave the header out, as the definition sets it',
    );
  }
  return versions ? { ...headers, [PAYLOAD_VERSION_HEADER]: own } : headers;
}
