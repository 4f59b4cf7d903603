import type { EnqueueOptions } from '../../client/types.js';
import type { ResultOptions } from '../../results/options.js';
import type { TaskInfo } from '../../task/info.js';
import type { Jsonify } from '../../task/jsonify.js';
import type { HandlerResult, IsContext } from '../decorators/handler-types.js';

/** A class with `@TaskHandler` methods. */
export type TasksClass<C extends object = object> = abstract new (...args: never[]) => C;

/** Options of a call of a method: those of `enqueue`. */
export type CallOptions = EnqueueOptions<never>;

/** Names that the methods of Nest have, or those of the calls themselves: no handler is called by them. */
export const RESERVED_NAMES = [
  'with',
  'call',
  'then',
  'onModuleInit',
  'onModuleDestroy',
  'onApplicationBootstrap',
  'onApplicationShutdown',
  'beforeApplicationShutdown',
] as const;

/**
 * The handlers of a class as methods that enqueue: each takes the payload of the handler, and resolves to the TaskInfo when the task
 * is stored, with the type of the handler's result. The payload is the first parameter of the handler that is no TaskContext.
 *
 * TypeScript does not see decorators, so methods that are no handlers are here, too; calling one throws an InvalidHandlerError.
 */
export type TasksOf<C extends object> = {
  readonly [K in keyof C as K extends Reserved ? never : C[K] extends AnyMethod ? K : never]: Call<C[K]>;
} & {
  /**
   * The same methods with these options for every call. They override those of the definition, option by option.
   *
   * @example
   * await this.emails.with({ processIn: '10m', unique: '1h' }).welcome({ userId: 42 });
   */
  with(options: CallOptions): TasksOf<C>;
  /**
   * The same methods, which wait for the result of the handler, as `AsynqClient.call` does.
   *
   * @example
   * const { url } = await this.invoices.call({ timeout: '10s' }).render({ orderId });
   *
   * @param options how to wait; default: for 30 seconds. Options of the task go before it, with `with`
   */
  call(options?: ResultOptions): ResultsOf<C>;
};

/** The handlers of a class as methods that enqueue, and resolve to the result. See {@link TasksOf}. */
export type ResultsOf<C extends object> = {
  readonly [K in keyof C as K extends Reserved ? never : C[K] extends AnyMethod ? K : never]: ResultCall<C[K]>;
};

type Reserved = (typeof RESERVED_NAMES)[number];
type AnyMethod = (...args: never[]) => unknown;

type Call<M> = M extends (...args: infer A) => infer R
  ? (...payload: CallArguments<A>) => Promise<TaskInfo<HandlerResult<R>>>
  : never;

type ResultCall<M> = M extends (...args: infer A) => infer R
  ? (...payload: CallArguments<A>) => Promise<Jsonify<HandlerResult<R>>>
  : never;

/** The payload among the parameters of a handler: the first that is no TaskContext. */
type CallArguments<A extends readonly unknown[]> = A extends readonly []
  ? []
  : A extends readonly [infer First, ...infer Rest]
    ? IsContext<First> extends true
      ? CallArguments<Rest>
      : [undefined] extends [First]
        ? [payload?: Data<First>]
        : [payload: Data<First>]
    : A extends readonly [(infer First)?, ...infer Rest]
      ? IsContext<First> extends true
        ? CallArguments<Rest>
        : [payload?: Data<First>]
      : [payload?: Data<A[number]>];

/** An object without its methods, at every depth: a caller need not make an instance of the class of a DTO. */
type Data<T> = 0 extends 1 & T
  ? T
  : T extends Untouched
    ? T
    : T extends readonly unknown[]
      ? { [I in keyof T]: Data<T[I]> }
      : T extends object
        ? { [K in keyof T as T[K] extends AnyMethod ? never : K]: Data<T[K]> }
        : T;

type Untouched = Date | ArrayBufferView | ArrayBuffer | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>;
