import { describe, expect, it } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { InvalidOptionError, InvalidTaskError } from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import type { FairnessOptions } from '../../lib/task/fairness.js';
import { FAIRNESS_HEADER, fairnessOf, fairnessText } from '../../lib/wire/fairness.js';

interface Row {
  readonly tenant: unknown;
}

const define = (fairness: unknown) =>
  defineTask<Row>('import:row', { queue: 'imports', fairness: fairness as FairnessOptions<Row> });

const client = new AsynqClient(new MemoryBroker());
const headerOf = async (fairness: unknown, tenant: unknown, options = {}): Promise<string | undefined> =>
  (await client.enqueue(define(fairness), { tenant }, options)).headers?.[FAIRNESS_HEADER];

const key = ({ tenant }: Row) => tenant as string;

describe('fairness of a definition', () => {
  it('puts the share of a task into its header', async () => {
    expect(await headerOf({ key }, 'acme')).toBe('1 0 0 1 acme');
    expect(await headerOf({ key }, 42)).toBe('1 0 0 1 42');
    const limits = { concurrency: 5, rate: { max: 50, per: '1s' }, weight: 0.5 };
    expect(await headerOf({ key, ...limits }, 'the acme')).toBe('0.5 5 50 1000 the acme');
  });

  it('asks functions for what a key gets', async () => {
    const premium = (yes: unknown, no: unknown) => (name: string) => (name === 'premium' ? yes : no);
    const fairness = {
      key,
      concurrency: premium(10, 1),
      rate: premium(undefined, { max: 1, per: '1m' }),
      weight: premium(3, undefined),
    };
    expect(await headerOf(fairness, 'premium')).toBe('3 10 0 1 premium');
    expect(await headerOf(fairness, 'other')).toBe('1 1 1 60000 other');
  });

  it('gives way to the call', async () => {
    expect(await headerOf({ key, concurrency: 5 }, 'acme', { fairnessKey: 'own', fairnessWeight: 2 })).toBe(
      '2 5 0 1 own',
    );
    expect(await headerOf({ key }, 'acme', { fairnessWeight: 2 })).toBe('2 0 0 1 acme');
    const info = await client.enqueue('plain', {}, { fairnessKey: 'acme' });
    expect(info.headers).toEqual({ [FAIRNESS_HEADER]: '1 0 0 1 acme' });
  });

  it.each([
    [
      'a key that throws',
      {
        key: () => {
          throw new Error('no tenant');
        },
      },
      'acme',
      'the key of the fairness of task "import:row" threw: no tenant',
    ],
    ['no key', { key }, undefined, 'must be a text or a number, not undefined'],
    ['a promise', { key: () => Promise.resolve('a') }, 'acme', 'must be a text or a number'],
    ['a blank key', { key }, ' ', 'is blank; give the name of a tenant'],
    ['10 kB', { key }, 'x'.repeat(10_000), 'has 10000 bytes, and may have 256; give a hash of it'],
    ['braces', { key }, 'a}', 'brace'],
    ['a weight of 0 for a key', { key, weight: () => 0 }, 'acme', 'must be a number from 0.001 to 1000, not 0'],
    ['a rate of 0 for a key', { key, rate: () => ({ max: 0, per: '1s' }) }, 'acme', 'from 1 to 1000000000'],
  ])('refuses %s before anything is written', async (_, fairness, tenant, message) => {
    const failure = await client.enqueue(define(fairness), { tenant }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(InvalidTaskError);
    expect((failure as Error).message).toContain(message);
  });

  it.each([
    [{ key, weight: 1e9 }, 'must be a number from 0.001 to 1000, not 1000000000'],
    [{ key, concurrency: 0 }, 'globalConcurrency of fairness of task "import:row"'],
    [{ key, rate: { max: 5 } }, 'has no per; give { max, per }'],
    [{}, 'key of fairness of task "import:row"'],
    [{ key, wait: 5 }, 'wait'],
    ['acme', 'fairness of task "import:row"'],
  ])('refuses %j', (fairness, message) => {
    expect(() => define(fairness)).toThrow(InvalidTaskError);
    expect(() => define(fairness)).toThrow(message);
  });

  it('needs a key for a weight', async () => {
    await expect(client.enqueue('plain', {}, { fairnessWeight: 2 })).rejects.toThrow('give fairnessKey');
  });

  it('excludes maxPending of the queue', () => {
    const queues = { imports: { fairness: true, maxPending: 5 } };
    expect(() => new AsynqClient(new MemoryBroker(), { queues })).toThrow(InvalidOptionError);
    expect(() => new AsynqClient(new MemoryBroker(), { queues: { imports: { fairness: 1 as never } } })).toThrow(
      'fairness of queue "imports" must be true or false, not 1',
    );
  });
});

describe('the header of a share', () => {
  const share = { key: 'a b', weight: 0.5, concurrency: 3, rate: 7, window: 1_000 };

  it('is read as it was written', () => {
    expect(fairnessOf({ [FAIRNESS_HEADER]: fairnessText(share) })).toEqual(share);
    expect(fairnessOf({ [FAIRNESS_HEADER]: fairnessText({ ...share, weight: 1e-3 }) })?.weight).toBe(0.001);
  });

  it.each(['', 'acme', '1 0 0 acme', '0 0 0 1 acme', '-1 0 0 1 acme', 'NaN 0 0 1 acme', '1 0 0 1 ', '1e999 0 0 1 a'])(
    'that is %j makes a task without a key',
    (text) => {
      expect(fairnessOf({ [FAIRNESS_HEADER]: text })).toBeUndefined();
    },
  );
});
