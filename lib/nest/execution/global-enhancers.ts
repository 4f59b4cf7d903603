import { ForbiddenException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { ApplicationConfig, ExternalContextCreator } from '@nestjs/core';
import { GlobalEnhancerError } from '../../errors.js';
import type { TaskContext } from '../../task/context.js';
import { globalEnhancerFailed, guardRefused } from '../names/nest.messages.js';

export type EnhancerKind = 'guard' | 'interceptor' | 'pipe';

/** Who of the application threw an error: most of them are written for HTTP, and find no request in a task. */
const thrownBy = new WeakMap<object, { readonly kind: EnhancerKind; readonly name: string }>();

export function nameOf(enhancer: object): string {
  const { name = '' } = (enhancer.constructor as { name?: string } | undefined) ?? {};
  return name === '' || name === 'Object' ? 'without a class' : name;
}

/** The guards, interceptors and pipes that the whole application has. */
export class GlobalEnhancers {
  constructor(private readonly config: ApplicationConfig) {}

  has(kind: EnhancerKind, enhancer: object): boolean {
    const [instances, scoped] = this.all(kind);
    return instances.includes(enhancer) || scoped.some(({ metatype }) => metatype === enhancer.constructor);
  }

  /** Remembers who threw it, if that is one of these. */
  blame(kind: EnhancerKind, enhancer: object, error: unknown): void {
    if (typeof error !== 'object' || error === null || thrownBy.has(error) || !this.has(kind, enhancer)) return;
    thrownBy.set(error, { kind, name: nameOf(enhancer) });
  }

  private all(kind: EnhancerKind): readonly [readonly object[], readonly { readonly metatype: unknown }[]] {
    const { config } = this;
    if (kind === 'guard') return [config.getGlobalGuards(), config.getGlobalRequestGuards()];
    if (kind === 'interceptor') return [config.getGlobalInterceptors(), config.getGlobalRequestInterceptors()];
    return [config.getGlobalPipes(), config.getGlobalRequestPipes()];
  }
}

/** The name of the pipe of the application that threw the error. */
export const globalPipeOf = (error: object): string | undefined => {
  const found = thrownBy.get(error);
  return found?.kind === 'pipe' ? found.name : undefined;
};

/** The error, or one that names who of the application threw it, where that looks like code for HTTP only. */
export function explained(error: unknown, type: string): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const found = thrownBy.get(error);
  if (!found || !looksLikeHttp(error, found.kind)) return error;
  const { message } = error as { message?: unknown };
  return new GlobalEnhancerError(globalEnhancerFailed(found, type, String(message)), { cause: error });
}

/** A guard for HTTP finds no token; any code for HTTP finds no headers. */
function looksLikeHttp(error: object, kind: EnhancerKind): boolean {
  const { name, getStatus } = error as { name?: unknown; getStatus?: unknown };
  if (name === 'TypeError' || name === 'ReferenceError') return true;
  if (kind === 'pipe' || typeof getStatus !== 'function') return false;
  const status = (error as { getStatus(): unknown }).getStatus();
  return status === 401 || status === 403;
}

/** The parts of Nest's own consumer of guards that are used here. */
export interface GuardRunner {
  createContext(
    args: unknown[],
    instance: object,
    callback: unknown,
  ): ExecutionContext & { setType(type: string): void };
  /** The end of a promise, or of an Observable. */
  pickResult(result: ReturnType<CanActivate['canActivate']>): Promise<boolean>;
}

/** Calls guards as Nest's own consumer does, with errors that say which of them it was. */
export class Guards {
  constructor(
    private readonly nest: GuardRunner,
    private readonly globals: GlobalEnhancers,
  ) {}

  /** As Nest calls it. @throws what a guard throws, and ForbiddenException when one refuses */
  async tryActivate(
    guards: readonly CanActivate[],
    args: unknown[],
    instance: object,
    callback: unknown,
    type: string,
  ): Promise<boolean> {
    const context = this.nest.createContext(args, instance, callback);
    context.setType(type);
    for (const guard of guards) {
      const result = this.call(guard, context);
      if (!(typeof result === 'boolean' ? result : await result)) throw this.refusal(guard, args);
    }
    return true;
  }

  private call(guard: CanActivate, context: ExecutionContext): boolean | Promise<boolean> {
    try {
      const result = guard.canActivate(context);
      return typeof result === 'boolean' ? result : this.picked(guard, result);
    } catch (error) {
      this.globals.blame('guard', guard, error);
      throw error;
    }
  }

  private async picked(guard: CanActivate, result: ReturnType<CanActivate['canActivate']>): Promise<boolean> {
    try {
      return await this.nest.pickResult(result);
    } catch (error) {
      this.globals.blame('guard', guard, error);
      throw error;
    }
  }

  private refusal(guard: CanActivate, args: unknown[]): ForbiddenException {
    const context = args[1] as TaskContext | readonly TaskContext[];
    const type = Array.isArray(context) ? (context as readonly TaskContext[])[0]?.type : (context as TaskContext).type;
    return new ForbiddenException(guardRefused(nameOf(guard), type ?? '', this.globals.has('guard', guard)));
  }
}

/** What makes the lists of guards, interceptors and pipes of a method; without the configuration it knows no global ones. */
const LISTS = [
  'guardsContextCreator',
  'interceptorsContextCreator',
  'pipesContextCreator',
  'filtersContextCreator',
] as const;

/** The parts of Nest's context creator that leave out what the whole application has, as Nest's own microservices do. */
export function withoutGlobals(creator: ExternalContextCreator): object {
  const parts = creator as unknown as Readonly<Record<(typeof LISTS)[number], object>>;
  return Object.fromEntries(
    LISTS.map((name) => [name, Object.assign(Object.create(parts[name]) as object, { config: undefined })]),
  );
}
