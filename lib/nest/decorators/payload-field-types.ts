/** What the compiler shows of a parameter that does not take its field. */
export interface WrongField<Reason extends string, Expected> {
  readonly reason: Reason;
  readonly expected: Expected;
}

/** The names of the fields of a payload; of a union, those of any of its types. A definition without types takes any name. */
export type PayloadFieldName<Received> = unknown extends Received
  ? string
  : Received extends unknown
    ? keyof Received & string
    : never;

/** The value of a field. A type of a union that has no such field gives `undefined`. */
export type PayloadFieldValue<Received, Field extends string> = unknown extends Received
  ? unknown
  : Received extends unknown
    ? Field extends keyof Received
      ? Received[Field]
      : undefined
    : never;

/**
 * The decorator of a parameter that gets one field of the payload of a definition. It compiles when the parameter takes the value of
 * the field, or an array of such values, as in a batch handler.
 */
export interface PayloadFieldDecorator<Received, Field extends string> {
  <T, K extends string | symbol | undefined, I extends number>(
    target: T,
    key: K,
    index: I,
  ): Checked<ParameterOf<T, K, I>, PayloadFieldValue<Received, Field>>;
}

/** In an object: a parameter of type `never` or `any` is one, too. */
type ParameterOf<T, K, I extends number> = K extends keyof T
  ? T[K] extends (...args: infer A) => unknown
    ? { type: A[I] }
    : unknown
  : unknown;

type Checked<Parameter, Value> = Parameter extends { type: infer T }
  ? unknown extends Value
    ? void
    : [Value] extends [T]
      ? void
      : [Value[]] extends [T]
        ? void
        : WrongField<'the parameter does not take this field of the payload', Value>
  : void;
