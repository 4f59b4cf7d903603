import { defineTask, type Jsonify, type NotJson, type PayloadOf, type ReceivedOf, type TaskInfo } from 'nestjs-asynq';
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

describe('a definition', () => {
  it('carries what handlers receive beside what callers give', () => {
    const WithDate = defineTask<Dto, string>('with:date');
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
