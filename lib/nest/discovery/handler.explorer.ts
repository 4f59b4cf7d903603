import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { InvalidHandlerError } from '../../errors.js';
import type { PeriodicSourceMetadata } from '../decorators/periodic-task-source.decorator.js';
import type { TaskHandlerMetadata } from '../decorators/task-handler.decorator.js';
import { hiddenMethod, twoHandlers } from '../names/nest.messages.js';
import { declaredOn } from '../decorators/handler-method.js';
import { OWN_METADATA } from '../names/nest.constants.js';
import { HandlerMetadataAccessor } from './handler.metadata-accessor.js';
import { type DeclaredMethod, methodsOf } from './methods-of.js';

/** Nest's wrapper of a provider or controller. */
export type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** One decorated method of one provider or controller. */
export interface Discovered<Metadata> extends DeclaredMethod {
  readonly metadata: Metadata;
  readonly wrapper: InstanceWrapper;
  /** Whether each task gets its own instance: request scope, durable, transient. */
  readonly scoped: boolean;
  readonly instanceClass: Type;
  /** `Class.method`, for messages. */
  readonly label: string;
}

/** One `@TaskHandler`, or the handler half of one `@PeriodicTask`. */
export type DiscoveredHandler = Discovered<TaskHandlerMetadata>;

/** One `@PeriodicTaskSource`. */
export type DiscoveredSource = Discovered<PeriodicSourceMetadata>;

/**
 * Finds the decorated methods of an application: in class, value and factory providers and in controllers, inherited methods
 * included. It cannot search what a request-scoped factory returns, which is unknown before a request.
 */
@Injectable()
export class HandlerExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly accessor: HandlerMetadataAccessor,
  ) {}

  /** @throws InvalidHandlerError when two handlers have one pattern and connection */
  explore(): DiscoveredHandler[] {
    const handlers = this.search((method) => this.accessor.handlersOf(method));
    rejectDuplicates(handlers);
    return handlers;
  }

  sources(): DiscoveredSource[] {
    return this.search((method) => {
      const source = this.accessor.sourceOf(method);
      return source ? [source] : [];
    });
  }

  /** Every method of every provider and controller that has such metadata. */
  search<M>(metadataOf: (method: object) => readonly M[]): Discovered<M>[] {
    // Classes come first: a factory may return the same instance under another token.
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    wrappers.sort((a, b) => Number(a.isNotMetatype) - Number(b.isNotMetatype));
    const searched = new Set<object>();
    const found: Discovered<M>[] = [];
    for (const wrapper of wrappers) {
      const instance = instanceOf(wrapper);
      if (!instance || searched.has(instance)) continue; // an alias, or a value with two tokens
      searched.add(instance);
      found.push(...this.methodsWith(wrapper, instance, metadataOf));
    }
    return found;
  }

  /** The classes of all providers and controllers, with their ancestors. */
  provided(): Set<object> {
    const classes = new Set<object>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      let prototype = prototypeOf(wrapper);
      for (; prototype && prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype) as object) {
        const { constructor } = prototype;
        if (typeof constructor === 'function') classes.add(constructor);
      }
    }
    return classes;
  }

  private methodsWith<M>(
    wrapper: InstanceWrapper,
    instance: object,
    metadataOf: (method: object) => readonly M[],
  ): Discovered<M>[] {
    const instanceClass = classOf(instance);
    const scoped = wrapper.isTransient || !wrapper.isDependencyTreeStatic();
    const prototype = Object.getPrototypeOf(instance) as object | null;
    rejectHidden(prototype, instanceClass);
    return methodsOf(prototype).flatMap(({ owner, methodName, method }) => {
      const label = `${instanceClass.name}.${methodName}`;
      const common = { wrapper, scoped, instanceClass, owner, methodName, method, label };
      return metadataOf(method).map((metadata) => ({ metadata, ...common }));
    });
  }
}

/**
 * A decorator above ours may have replaced the method by one without our metadata: silently there would be no handler. Another class that
 * overrides the method without a decorator means it.
 *
 * @throws InvalidHandlerError
 */
function rejectHidden(prototype: object | null, { name }: Type): void {
  const overridden = new Set<string>();
  for (let owner = prototype; owner && owner !== Object.prototype; owner = Object.getPrototypeOf(owner) as object) {
    const current = Object.getOwnPropertyDescriptors(owner);
    const hidden = declaredOn(owner).find(
      ({ methodName, method }) =>
        !overridden.has(methodName) &&
        current[methodName]?.value !== method &&
        !hasOurs(current[methodName]?.value as unknown),
    );
    if (hidden) throw new InvalidHandlerError(hiddenMethod(`${name}.${hidden.methodName}`, hidden.decorator));
    for (const methodName of Object.keys(current)) overridden.add(methodName);
  }
}

const hasOurs = (method: unknown): boolean =>
  typeof method === 'function' &&
  Reflect.getOwnMetadataKeys(method).some((key) => typeof key === 'string' && key.startsWith(OWN_METADATA));

/** The instance; for a scoped class the object with its prototype that Nest keeps for it. */
function instanceOf(wrapper: InstanceWrapper): object | undefined {
  if (wrapper.isAlias) return undefined;
  const instance: unknown = wrapper.instance;
  return typeof instance === 'object' && instance !== null ? instance : undefined;
}

function prototypeOf(wrapper: InstanceWrapper): object | undefined {
  const instance = instanceOf(wrapper);
  return instance && (Object.getPrototypeOf(instance) as object | undefined);
}

const classOf = (instance: object): Type =>
  (Object.getPrototypeOf(instance) as { constructor?: Type } | null)?.constructor ?? (Object as unknown as Type);

function rejectDuplicates(handlers: readonly DiscoveredHandler[]): void {
  const first = new Map<string, DiscoveredHandler>();
  for (const handler of handlers) {
    const { pattern, connection } = handler.metadata;
    const key = `${connection}\n${pattern}`;
    const twin = first.get(key);
    if (twin) throw new InvalidHandlerError(twoHandlers(pattern, connection, twin.label, handler.label));
    first.set(key, handler);
  }
}
