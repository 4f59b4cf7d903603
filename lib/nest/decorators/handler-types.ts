import type { Observable } from 'rxjs';
import type { TaskContext } from '../../task/context.js';

/** What the compiler shows of a method that is no handler of its definition. */
export interface WrongHandler<Reason extends string, Expected> {
  readonly reason: Reason;
  readonly expected: Expected;
}

/**
 * The decorator of a method that handles the tasks of a definition. It compiles when the method returns the result `R` (or a promise
 * or an Observable of it), and one of its parameters takes `Received`, or a field of that, as with `@Payload('field')`. The compiler
 * does not see the decorators of parameters, and a `TaskContext` is no payload to it. `R` or `Received` of `unknown` accepts all, as does
 * `TaskHandler(definition as TaskDefinition)` in generic code, where the types are not known yet.
 */
export interface TaskHandlerDecorator<R, Received> {
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): Checked<M, R, Received>;
  // The same again: for a decorator with one signature the compiler refuses `applyDecorators(TaskHandler(Definition), …)`.
  <M>(target: object, key: string | symbol, method: TypedPropertyDescriptor<M>): Checked<M, R, Received>;
}

/** What a handler returns in the end: the value of its promise, or the last one of its Observable. */
export type HandlerResult<R> = Awaited<R> extends Observable<infer V> ? V : Awaited<R>;

export type IsContext<T> = 0 extends 1 & T ? false : [T] extends [TaskContext] ? true : false;

type Checked<M, R, Received> = 0 extends 1 & M
  ? void
  : M extends (...args: infer A) => infer Returned
    ? IsResult<HandlerResult<Returned>, R> extends true
      ? TakesPayload<A, Received> extends true
        ? void
        : WrongHandler<'no parameter takes the payload of the definition, as JSON leaves it', Received>
      : WrongHandler<'the method does not return the result of the definition', R>
    : void;

type IsResult<Value, R> = unknown extends R ? true : [Value] extends [R] ? true : false;

export type TakesPayload<A extends readonly unknown[], Received> = unknown extends Received
  ? true
  : Payloads<A> extends readonly []
    ? true
    : true extends Takes<Payloads<A>[number], Received>
      ? true
      : false;

/** The parameters that are no context. In objects: so that a union of them keeps each. */
type Payloads<A extends readonly unknown[]> = A extends readonly []
  ? []
  : A extends readonly [infer First, ...infer Rest]
    ? IsContext<First> extends true
      ? Payloads<Rest>
      : [{ type: First }, ...Payloads<Rest>]
    : A extends readonly [(infer First)?, ...infer Rest]
      ? number extends A['length']
        ? [{ type: A[number] }]
        : IsContext<First> extends true
          ? Payloads<Rest>
          : [{ type: First | undefined }, ...Payloads<Rest>]
      : [{ type: A[number] }];

/** Bytes are taken as they are stored. */
type Takes<Parameter, Received> = Parameter extends { type: infer T }
  ? 0 extends 1 & T
    ? true
    : [T] extends [Uint8Array]
      ? true
      : [Received] extends [T]
        ? true
        : TakesField<T, Received>
  : never;

type TakesField<T, Received> = Received extends object
  ? true extends { [K in keyof Received]-?: [Received[K]] extends [T] ? true : false }[keyof Received]
    ? true
    : false
  : false;
