import type { ExternalContextCreator } from '@nestjs/core';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import { type GlobalEnhancers, type GuardRunner, Guards, withoutGlobals } from './global-enhancers.js';
import { type InterceptorContexts, Interceptors } from './interceptors.js';

interface Consumers {
  readonly interceptorsConsumer: InterceptorContexts;
  readonly guardsConsumer: GuardRunner;
}

/** Nest's cache of parameter metadata. */
interface MetadataStorage {
  get(): unknown;
  set(instance: object, key: string, metadata: unknown): void;
}

/**
 * Nest's context creator, with interceptors that cost less, errors that name the guard, and two of its guesses corrected:
 *
 * - The module that has the instances of guards, interceptors and pipes. Nest searches providers only, so those of a controller would
 *   be silently left out; in early releases also those of a class behind another token.
 * - The cached parameters. Nest 11 caches them by the name of the class, so two classes with one name would share them.
 *
 * @param usesGlobals whether guards, interceptors and pipes of the whole application run
 */
export function forHandler(
  creator: ExternalContextCreator,
  { wrapper }: DiscoveredHandler,
  globals: GlobalEnhancers,
  usesGlobals: boolean,
): ExternalContextCreator {
  const moduleKey = (): string => wrapper.host!.token;
  const { interceptorsConsumer, guardsConsumer } = creator as unknown as Consumers;
  const own = {
    ...(usesGlobals ? {} : withoutGlobals(creator)),
    getHostModuleKey: moduleKey,
    getContextModuleKey: moduleKey,
    handlerMetadataStorage: storageOfOne(),
    interceptorsConsumer: new Interceptors(interceptorsConsumer, globals),
    guardsConsumer: new Guards(guardsConsumer, globals),
  };
  return Object.assign(Object.create(creator) as ExternalContextCreator, own as object);
}

function storageOfOne(): MetadataStorage {
  let kept: unknown;
  return { get: () => kept, set: (_instance, _key, metadata) => void (kept = metadata) };
}
