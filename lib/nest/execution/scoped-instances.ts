import { ContextIdFactory, ModuleRef, type ContextId } from '@nestjs/core';
import type { TaskContext } from '../../task/context.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';

/** Resolves request-scoped, durable and transient handlers, one context per attempt; injecting REQUEST gives the TaskContext. */
export class ScopedInstances {
  private readonly moduleRef: ModuleRef;
  private readonly durable: boolean;

  constructor(private readonly handler: DiscoveredHandler) {
    const { wrapper } = handler;
    this.moduleRef = wrapper.host!.getProviderByKey<ModuleRef>(ModuleRef).instance;
    this.durable = wrapper.isDependencyTreeDurable();
  }

  /** The context of an attempt, from the application's ContextIdStrategy if it has one. */
  contextOf(task: TaskContext): ContextId {
    const contextId = ContextIdFactory.getByRequest(task as object as Record<string, unknown>);
    // Like Nest's router: later requests for the context of this "request" get the same one.
    Object.defineProperty(task, REQUEST_CONTEXT_KEY, { value: contextId, configurable: true });
    this.moduleRef.registerRequestByContextId(this.durable ? contextId.payload : task, contextId);
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
