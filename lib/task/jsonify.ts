/** Stands where a value was that has no form in JSON, so that nothing else can be taken for it. */
export interface NotJson<Kind extends string> {
  readonly __notJson: Kind;
}

/**
 * A payload as it is when JSON can hold it. What it cannot hold has a reason in its place: `NotJson<'a Map …'>`. A `Date`, and what has
 * `toJSON()`, is text or data after JSON, and so allowed.
 */
export type JsonPayload<T> = 0 extends 1 & T ? T : T extends Uint8Array | undefined | void ? T : Held<T>;

type Held<T> = 0 extends 1 & T
  ? T
  : unknown extends T
    ? T
    : T extends JsonValue | undefined
      ? T
      : T extends bigint
        ? NotJson<'a bigint: give a number or a string'>
        : T extends symbol
          ? NotJson<'a symbol'>
          : T extends (...args: never[]) => unknown
            ? NotJson<'a function'>
            : T extends { toJSON(): unknown }
              ? T
              : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
                ? NotJson<'a Map or a Set: give an array, or a codec'>
                : T extends Error | RegExp | PromiseLike<unknown> | ArrayBufferView
                  ? NotJson<'an Error, a RegExp, a promise or bytes: give text, or a codec'>
                  : T extends readonly unknown[]
                    ? { [I in keyof T]: Held<T[I]> }
                    : T extends object
                      ? Pick<T, keyof T> extends T
                        ? { [K in keyof T]: Held<T[K]> }
                        : NotJson<'an instance of a class with private fields: give plain data, or a codec'>
                      : T;

/** What the compiler shows of a definition whose payload JSON cannot hold. */
export interface PayloadIsNotJson<P> {
  readonly 'JSON cannot hold this payload': P;
}

/**
 * The first argument of `defineTask`: text, for a payload that JSON can hold. A function of yours that defines tasks takes this:
 * `<P>(type: TaskTypeFor<P>) => defineTask<P>(type)`.
 */
export type TaskTypeFor<P> = [P] extends [JsonPayload<P>] ? string : PayloadIsNotJson<JsonPayload<P>>;

type Lost = undefined | symbol | ((...args: never[]) => unknown);

/**
 * What a value is after its way through JSON: a `Date` is text, methods and fields that are functions are gone, a `Map` or a `Set` is
 * an empty object, and what `toJSON()` returns stands for the rest. A `bigint` has no form in JSON: `NotJson`. Bytes stay as they are
 * at the top, and only there. What extends `Keeps` stays as it is: see PayloadCodec.
 */
export type Jsonify<T, Keeps = never> = 0 extends 1 & T
  ? T
  : T extends Uint8Array | undefined | void
    ? T
    : Same<T, JsonOf<T, Keeps>>;

/** The type by its own name where JSON changes nothing. */
type Same<T, J> = [T, J] extends [J, T] ? T : J;

/** What JSON does not change. Its test ends the way through types that contain themselves. */
type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [field: string]: JsonValue };

type JsonOf<T, Keeps> = 0 extends 1 & T
  ? T
  : unknown extends T
    ? T
    : T extends JsonValue | Keeps
      ? T
      : T extends bigint
        ? NotJson<'bigint'>
        : T extends { toJSON(): infer J }
          ? JsonOf<J, Keeps>
          : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
            ? Record<string, never>
            : T extends readonly unknown[]
              ? { [I in keyof T]: T[I] extends Lost ? null : JsonOf<T[I], Keeps> }
              : T extends object
                ? JsonFields<T, Keeps>
                : never;

/** A field that may be undefined may be missing. */
type JsonFields<T, Keeps> = Flat<
  { [K in keyof T as Kept<T, K> extends true ? K : never]: JsonOf<T[K], Keeps> } & {
    [K in keyof T as Kept<T, K> extends 'perhaps' ? K : never]?: JsonOf<Exclude<T[K], Lost>, Keeps>;
  }
>;

type Kept<T, K extends keyof T> = K extends symbol
  ? false
  : 0 extends 1 & T[K]
    ? true
    : unknown extends T[K]
      ? true
      : T[K] extends Lost
        ? false
        : undefined extends T[K]
          ? 'perhaps'
          : true;

type Flat<T> = { [K in keyof T]: T[K] };
