import { ContextIdFactory, ModuleRef, type ContextId } from '@nestjs/core';
import { InvalidHandlerError } from '../../errors.js';
import { batchDurable } from '../names/nest.messages.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';

/**
 * Resolves request-scoped, durable and transient handlers, one context per call; injecting REQUEST gives the TaskContext,
 * or those of a batch.
 */
export class ScopedInstances {
  private readonly moduleRef: ModuleRef;
  private readonly durable: boolean;

  /** @throws InvalidHandlerError for a batch handler with a durable instance */
  constructor(private readonly handler: DiscoveredHandler) {
    const { wrapper, metadata, label } = handler;
    this.moduleRef = wrapper.host!.getProviderByKey<ModuleRef>(ModuleRef).instance;
    this.durable = wrapper.isDependencyTreeDurable();
    if (this.durable && metadata.batch) throw new InvalidHandlerError(batchDurable(label));
  }

  /** The context of a call, from the application's ContextIdStrategy if it has one. */
  contextOf(request: object): ContextId {
    const contextId = ContextIdFactory.getByRequest(request as Record<string, unknown>);
    // Like Nest's router: later requests for the context of this "request" get the same one.
    Object.defineProperty(request, REQUEST_CONTEXT_KEY, { value: contextId, configurable: true });
    this.moduleRef.registerRequestByContextId(this.durable ? contextId.payload : request, contextId);
    return contextId;
  }

  resolve(contextId: ContextId): Promise<object> {
    return this.moduleRef.resolve<object>(this.handler.wrapper.token as string, contextId, { strict: true });
  }
}

/** Nest keeps the context under a symbol that it does not export; its public factory reads that symbol of a request. */
const REQUEST_CONTEXT_KEY: PropertyKey = (() => {
  let key: PropertyKey = '';
  const request = new Proxy({}, { get: (_, asked) => ((key = asked), { id: 0 }) });
  ContextIdFactory.getByRequest(request);
  return key;
})();
