import { deserialize, serialize } from 'node:v8';
import {
  type Decoded,
  defineTask,
  type Jsonify,
  type JsonPayload,
  type NotJson,
  type PayloadCodec,
  type PayloadOf,
  type ReceivedOf,
  type TaskInfo,
  type TaskTypeFor,
} from 'nestjs-asynq';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { jsonCodec } from '../../lib/task/codec.js';

class Dto {
  userId!: number;
  name?: string;
  at!: Date;
  shout(): string {
    return this.name ?? '';
  }
}

interface Tree {
  readonly at: Date;
  readonly children: readonly Tree[];
}

type Json = string | number | boolean | null | Json[] | { [field: string]: Json };
type Id = string & { readonly __brand: 'id' };

describe('Jsonify', () => {
  it('leaves what JSON leaves, by its own name', () => {
    interface Plain {
      readonly id: Id;
      tags?: string[];
      pair: [number, 'a' | 'b'];
    }
    expectTypeOf<Jsonify<Plain>>().toEqualTypeOf<Plain>();
    expectTypeOf<Jsonify<Json>>().toEqualTypeOf<Json>();
    expectTypeOf<Jsonify<string | undefined>>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Jsonify<void>>().toEqualTypeOf<void>();
    expectTypeOf<Jsonify<unknown>>().toBeUnknown();
    expectTypeOf<Jsonify<Uint8Array>>().toEqualTypeOf<Uint8Array>();
  });

  it('shows what JSON changes, at every depth', () => {
    expectTypeOf<Jsonify<Dto>>().toEqualTypeOf<{ userId: number; name?: string; at: string }>();
    expectTypeOf<Jsonify<Tree>['children'][number]['children'][number]['at']>().toEqualTypeOf<string>();
    expectTypeOf<Jsonify<[Date, undefined, number]>>().toEqualTypeOf<[string, null, number]>();
    expectTypeOf<Jsonify<Record<string, Date>>>().toEqualTypeOf<Record<string, string>>();
    expectTypeOf<Jsonify<{ rates: Map<string, number> }>>().toEqualTypeOf<{ rates: Record<string, never> }>();
    expectTypeOf<Jsonify<{ image: Buffer }>>().toEqualTypeOf<{ image: { type: 'Buffer'; data: number[] } }>();
    expectTypeOf<Jsonify<{ id: bigint }>>().toEqualTypeOf<{ id: NotJson<'bigint'> }>();
  });

  it('says what the codec does', () => {
    const dto = Object.assign(new Dto(), { userId: 1, at: new Date(0) });
    const through = (value: unknown): unknown => jsonCodec.decode(jsonCodec.encode(value)!);
    expect(through(dto)).toEqual({ userId: 1, at: '1970-01-01T00:00:00.000Z' });
    expect(through([new Date(0), undefined, 1])).toEqual(['1970-01-01T00:00:00.000Z', null, 1]);
    expect(through({ rates: new Map([['a', 1]]) })).toEqual({ rates: {} });
    expect(through({ image: Buffer.from([1]) })).toEqual({ image: { type: 'Buffer', data: [1] } });
    expect(() => jsonCodec.encode({ id: 1n })).toThrow('BigInt');
  });
});

describe('a payload that JSON cannot hold', () => {
  class Money {
    constructor(private readonly cents: number) {}
    get total() {
      return this.cents;
    }
  }
  class Hash {
    #secret = 1;
    get size() {
      return this.#secret;
    }
  }

  it('does not compile as that of a definition, and names what', () => {
    const define = () => [
      // @ts-expect-error a Map
      defineTask<{ rates: Map<string, number> }>('t'),
      // @ts-expect-error a Set in an array, with options
      defineTask<{ tags: Set<string> }[]>('t', { queue: 'low' }),
      // @ts-expect-error a function
      defineTask<{ done: () => void }>('t'),
      // @ts-expect-error a method
      defineTask<Dto>('t'),
      // @ts-expect-error a class with private fields
      defineTask<{ price?: Money }>('t'),
      // @ts-expect-error with those of JavaScript, too
      defineTask<Hash>('t'),
      // @ts-expect-error a bigint
      defineTask<{ id: bigint | string }>('t'),
      // @ts-expect-error bytes inside
      defineTask<{ photo: Uint8Array }>('t'),
      // @ts-expect-error a promise
      defineTask<Promise<number>>('t'),
    ];
    expect(define).toBeDefined();
    expectTypeOf<JsonPayload<{ rates: Map<string, number>; at: Date }>>().toEqualTypeOf<{
      rates: NotJson<'a Map or a Set: give an array, or a codec'>;
      at: Date;
    }>();
  });

  it('is none of these', () => {
    const generic = <P>(type: TaskTypeFor<P>) => defineTask<P>(type);
    const define = () => [
      defineTask('t'),
      defineTask<void>('t'),
      defineTask<object>('t'),
      defineTask<Tree>('t'),
      defineTask<Json>('t'),
      defineTask<Uint8Array>('t'),
      defineTask<string | undefined>('t'),
      defineTask<{ id: Id; at: Date; link: URL; tags?: readonly string[]; pair: [number, 'a' | 'b']; any: unknown }>(
        't',
      ),
      defineTask<{ rates: Map<string, number> }>('t', { codec: jsonCodec }),
      generic<Tree>('t'),
      // @ts-expect-error the same through a function of the application
      generic<{ rates: Map<string, number> }>('t'),
    ];
    expect(define).toBeDefined();
  });
});

describe('a codec', () => {
  it('says what it keeps', () => {
    interface Rates {
      at: Date;
      rates: Map<string, number>;
      photo: Buffer;
    }
    const rich: PayloadCodec<Date | Map<unknown, unknown>> = {
      encode: (value) => Buffer.from(serialize(value)),
      decode: (bytes) => deserialize(bytes) as unknown,
    };
    expectTypeOf<Decoded<Rates, typeof rich>>().toEqualTypeOf<{
      at: Date;
      rates: Map<string, number>;
      photo: { type: 'Buffer'; data: number[] };
    }>();
    expectTypeOf<Decoded<Rates, PayloadCodec>>().toEqualTypeOf<Rates>();
    expectTypeOf<Jsonify<Rates, Date>['rates']>().toEqualTypeOf<Record<string, never>>();
    const Rated = defineTask<Rates, void, Decoded<Rates, typeof rich>>('rated', { codec: rich });
    expectTypeOf<ReceivedOf<typeof Rated>['at']>().toEqualTypeOf<Date>();
    expect(rich.decode(Buffer.from(rich.encode({ rates: new Map([['a', 1]]) })!))).toEqual({
      rates: new Map([['a', 1]]),
    });
  });
});

describe('a definition', () => {
  it('carries what handlers receive beside what callers give', () => {
    const WithDate = defineTask<Dto, string>('with:date' as never); // it has a method
    expectTypeOf<PayloadOf<typeof WithDate>>().toEqualTypeOf<Dto>();
    expectTypeOf<ReceivedOf<typeof WithDate>>().toEqualTypeOf<{ userId: number; name?: string; at: string }>();
    const Named = defineTask<{ at: Date }, string, { at: Date }>('named');
    expectTypeOf<ReceivedOf<typeof Named>>().toEqualTypeOf<{ at: Date }>();
    const Coded = defineTask<{ at: Date }>('coded', { codec: jsonCodec });
    expectTypeOf<ReceivedOf<typeof Coded>>().toEqualTypeOf<{ at: Date }>();
  });

  it('gives its result to the TaskInfo', () => {
    expectTypeOf<TaskInfo<string>>().toExtend<TaskInfo>();
    expectTypeOf<TaskInfo<string>>().not.toExtend<TaskInfo<number>>();
  });
});
