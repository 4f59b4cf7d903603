import type { HandlerResult, TakesPayload, WrongHandler } from './handler-types.js';

/** What a batch handler returns for one task: its result, or an Error when it alone has failed; or a promise of it. */
export type BatchResult<R> = R | Error | PromiseSettledResult<R> | Promise<R | Error>;

/**
 * The decorator of a batch handler of a definition. It compiles when the method returns an array of results `R`, of errors, of promises,
 * or what `Promise.allSettled` gives (or nothing, where `R` may be nothing), and one of its parameters takes an array of `Received`, or
 * of a field of that. The compiler does not see the decorators of parameters, and `TaskContext[]` is no payload to it.
 */
export interface BatchHandlerDecorator<R, Received> {
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): Checked<M, R, Received>;
  // The same again: for a decorator with one signature the compiler refuses `applyDecorators(TaskHandler(Definition), …)`.
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): Checked<M, R, Received>;
}

type Checked<M, R, Received> = 0 extends 1 & M
  ? void
  : M extends (...args: infer A) => infer Returned
    ? AreResults<HandlerResult<Returned>, R> extends true
      ? TakesPayload<ElementsOf<A>, Received> extends true
        ? void
        : WrongHandler<'no parameter takes an array of the payload of the definition, as JSON leaves it', Received[]>
      : WrongHandler<'the method does not return an array of the result of the definition', BatchResult<R>[]>
    : void;

type AreResults<Value, R> = unknown extends R
  ? [Value] extends [readonly unknown[] | undefined | void]
    ? true
    : false
  : [Value] extends [readonly BatchResult<R>[]]
    ? true
    : undefined extends R
      ? [Value] extends [undefined | void]
        ? true
        : false
      : [R] extends [void]
        ? [Value] extends [undefined | void]
          ? true
          : false
        : false;

/** The parameters of one task. One that is no array takes no payload. */
type ElementsOf<A extends readonly unknown[]> = { [K in keyof A]: ElementOf<A[K]> };

type ElementOf<T> = 0 extends 1 & T ? T : NonNullable<T> extends readonly (infer E)[] ? E : NoArray;

/** Stands for a parameter that is no array. */
interface NoArray {
  readonly noArray: never;
}
