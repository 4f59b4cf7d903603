import fc from 'fast-check';
import { Command, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { describe, expect } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { PackedReader } from '../../lib/broker/redis/scripts/packed-reader.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { type Argument, encodeScriptCall, sendScript } from '../../lib/broker/redis/scripts/script-command.js';
import { it } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';

const text = fc.string({ unit: 'binary', maxLength: 30 });
const long = fc.nat(3).map((power) => Buffer.alloc(10 ** power, power));
const bytes = fc.uint8Array({ maxLength: 30 }).map((array) => Buffer.from(array));

describe('encodeScriptCall', () => {
  it('writes what ioredis would write', () => {
    const argument: fc.Arbitrary<Argument> = fc.oneof(text, bytes, long);
    fc.assert(
      fc.property(fc.array(text), fc.array(argument), (keys, argv) => {
        const ours = encodeScriptCall('evalsha', 'abc', keys, argv);
        const theirs = new Command('evalsha', ['abc', keys.length, ...keys, ...argv]).toWritable({});
        expect(Buffer.from(ours)).toEqual(Buffer.from(theirs));
      }),
    );
  });
});

describe('sendScript', () => {
  const echo = 'return {KEYS[1], ARGV[1], ARGV[2], #ARGV}';
  const expected = [Buffer.from('key'), Buffer.from('ä'), Buffer.from('ff00', 'hex'), 2];

  it.for([
    ['the ioredis beside this library', Redis],
    ['another copy and major version of it', Redis5 as unknown as typeof Redis],
  ] as const)('sends text and bytes unchanged: %s', async ([_, Client], { driver }) => {
    const client = new Client({ port: driver.server.port });
    expect(await sendScript(client, 'eval', echo, ['key'], ['ä', Buffer.from('ff00', 'hex')])).toEqual(expected);
    client.disconnect();
  });

  it('runs a whole broker on a client of another copy', async ({ driver }) => {
    const client = new Redis5({ port: driver.server.port, lazyConnect: true });
    const broker = new RedisBroker(new RedisConnections(client as unknown as Redis));
    await broker.producer.enqueue('default', [request({ id: 'a' })]);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    expect(tasks.map(({ message }) => message.id)).toEqual(['a']);
    await broker.close();
    client.disconnect();
  });
});

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

describe('PackedReader', () => {
  it.for([
    [[]],
    [['']],
    [[31, 32, 255, 256, 65_535, 65_536].map((length) => 'x'.repeat(length))],
    [numbers(15)],
    [numbers(16)],
    [numbers(70_000)],
  ] as const)('reads what a script packs (case %#)', async ([elements], { driver }) => {
    const script = 'return cmsgpack.pack(ARGV)';
    const reader = new PackedReader((await driver.redis.callBuffer('EVAL', script, 0, ...elements)) as Buffer);
    const read: string[] = [];
    while (reader.more()) read.push(read.length % 2 ? reader.text() : reader.view().toString());
    expect(read).toEqual(elements);
  });

  it('reads counts of every size between texts', async ({ driver }) => {
    const counts = [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 52];
    const script = `return cmsgpack.pack({ ${counts.join(", 'x', ")} })`;
    const reader = new PackedReader((await driver.redis.callBuffer('EVAL', script, 0)) as Buffer);
    const read = [reader.count()];
    while (reader.more()) {
      expect(reader.text()).toBe('x');
      read.push(reader.count());
    }
    expect(read).toEqual(counts);
  });

  it.each([[0xff], [0xa1], [0xd1]])('rejects a byte that starts no count: %i', (type) => {
    expect(() => new PackedReader(Buffer.from([0x91, type, 0, 0])).count()).toThrow(RangeError);
  });

  it('is empty for an empty reply, and throws instead of reading past the end', () => {
    expect(new PackedReader(Buffer.alloc(0)).more()).toBe(false);
    expect(() => new PackedReader(Buffer.from([0x91, 0xa5, 0x78])).view()).toThrow(RangeError);
    expect(() => new PackedReader(Buffer.from([0x91, 0x01])).text()).toThrow(RangeError);
    expect(() => new PackedReader(Buffer.from([0x81]))).toThrow(RangeError);
  });
});
