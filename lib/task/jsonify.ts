/** Stands where a value was that has no form in JSON, so that nothing else can be taken for it. */
export interface NotJson<Kind extends string> {
  readonly __notJson: Kind;
}

type Lost = undefined | symbol | ((...args: never[]) => unknown);

/**
 * What a value is after its way through JSON: a `Date` is text, methods and fields that are functions are gone, a `Map` or a `Set` is
 * an empty object, and what `toJSON()` returns stands for the rest. A `bigint` has no form in JSON: `NotJson`. Bytes stay as they are
 * at the top, and only there.
 */
export type Jsonify<T> = 0 extends 1 & T ? T : T extends Uint8Array | undefined | void ? T : Same<T, JsonOf<T>>;

/** The type by its own name where JSON changes nothing. */
type Same<T, J> = [T, J] extends [J, T] ? T : J;

/** What JSON does not change. Its test ends the way through types that contain themselves. */
type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [field: string]: JsonValue };

type JsonOf<T> = 0 extends 1 & T
  ? T
  : unknown extends T
    ? T
    : T extends JsonValue
      ? T
      : T extends bigint
        ? NotJson<'bigint'>
        : T extends { toJSON(): infer J }
          ? JsonOf<J>
          : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
            ? Record<string, never>
            : T extends readonly unknown[]
              ? { [I in keyof T]: T[I] extends Lost ? null : JsonOf<T[I]> }
              : T extends object
                ? JsonFields<T>
                : never;

/** A field that may be undefined may be missing. */
type JsonFields<T> = Flat<
  { [K in keyof T as Kept<T, K> extends true ? K : never]: JsonOf<T[K]> } & {
    [K in keyof T as Kept<T, K> extends 'perhaps' ? K : never]?: JsonOf<Exclude<T[K], Lost>>;
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
