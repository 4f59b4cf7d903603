import type { ExternalContextCreator } from '@nestjs/core';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';

/** Nest's cache of what it read about a method's parameters. */
interface MetadataStorage {
  get(): unknown;
  set(instance: object, key: string, metadata: unknown): void;
}

/**
 * Nest's context creator, set right about two things it guesses:
 *
 * - The module in which it looks for the classes of guards, interceptors and pipes. It searches among providers only, so that those
 *   of a controller would be left out without a word; in its first releases also those of a class behind another token.
 * - What it has read about parameters. Nest 11 keeps that by the name of the class, so that two classes of one name would share it.
 */
export function forHandler(creator: ExternalContextCreator, { wrapper }: DiscoveredHandler): ExternalContextCreator {
  const moduleKey = (): string => wrapper.host!.token;
  const own = { getHostModuleKey: moduleKey, getContextModuleKey: moduleKey, handlerMetadataStorage: storageOfOne() };
  return Object.assign(Object.create(creator) as ExternalContextCreator, own as object);
}

function storageOfOne(): MetadataStorage {
  let kept: unknown;
  return { get: () => kept, set: (_instance, _key, metadata) => void (kept = metadata) };
}
