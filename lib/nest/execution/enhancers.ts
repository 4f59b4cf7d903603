import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { InvalidHandlerError } from '../../errors.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import { unreachableEnhancer, unreachableScoped } from '../names/nest.messages.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import type { ParamPlan } from './param-plan.js';

/** An instance, or the class of one. */
export type EnhancerRef = object | Type;

const KINDS = ['guards', 'interceptors', 'pipes', 'filters'] as const;
type Kind = (typeof KINDS)[number];

/** The enhancers of a method and its class, in the order in which Nest applies them. */
export function boundEnhancers(
  { owner, instanceClass, method }: Pick<DiscoveredHandler, 'owner' | 'method'> & { readonly instanceClass: object },
  kind: Kind,
): EnhancerRef[] {
  const onClass = (Reflect.getMetadata(NEST_METADATA[kind], instanceClass ?? owner.constructor) ?? []) as EnhancerRef[];
  const onMethod = (Reflect.getMetadata(NEST_METADATA[kind], method) ?? []) as EnhancerRef[];
  return [...onClass, ...onMethod];
}

/** Finds out which handlers have guards, pipes, interceptors or filters; the others are called without Nest's pipeline. */
@Injectable()
export class Enhancers {
  constructor(private readonly config: ApplicationConfig) {}

  /** Whether the handler has any enhancer, from its parameters to the application (`usesGlobals`). */
  wrap(handler: DiscoveredHandler, plan: ParamPlan, usesGlobals: boolean): boolean {
    if (plan.custom || plan.pipes.length > 0 || (usesGlobals && this.anyGlobal())) return true;
    return KINDS.some((kind) => boundEnhancers(handler, kind).length > 0);
  }

  /**
   * Nest creates instances of enhancer classes only for class providers. For values and factories it silently leaves them out,
   * which must not happen to a guard.
   */
  requireReachable(handler: DiscoveredHandler, plan: ParamPlan, usesGlobals: boolean): void {
    const { wrapper, label } = handler;
    if (!wrapper.isNotMetatype) return;
    for (const kind of KINDS) {
      const refs = [...boundEnhancers(handler, kind), ...(kind === 'pipes' ? plan.pipes : [])];
      const lost = refs.find((ref) => typeof ref === 'function' && !wrapper.host?.injectables.has(ref as Type));
      if (!lost) continue;
      throw new InvalidHandlerError(unreachableEnhancer(label, kind.slice(0, -1), (lost as Type).name));
    }
    if (usesGlobals && this.globalPerRequest().some((wrappers) => wrappers.length > 0)) {
      throw new InvalidHandlerError(unreachableScoped(label));
    }
  }

  private anyGlobal(): boolean {
    const { config } = this;
    const global: (readonly unknown[])[] = [
      config.getGlobalGuards(),
      config.getGlobalInterceptors(),
      config.getGlobalPipes(),
      config.getGlobalFilters(),
      ...this.globalPerRequest(),
    ];
    return global.some((enhancers) => enhancers.length > 0);
  }

  private globalPerRequest(): (readonly unknown[])[] {
    const { config } = this;
    return [
      config.getGlobalRequestGuards(),
      config.getGlobalRequestInterceptors(),
      config.getGlobalRequestPipes(),
      config.getGlobalRequestFilters(),
    ];
  }
}
