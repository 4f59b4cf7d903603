import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Batch, sendBatch } from '../../../lib/dashboard/web/list/batches.js';

describe('a batch', () => {
  /** The ids of each request. */
  async function send(ids: string[]): Promise<{ requests: string[][]; total: Batch }> {
    const requests: string[][] = [];
    vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
      const { task_ids } = JSON.parse(body) as { task_ids: string[] };
      requests.push(task_ids);
      if (ids.length > 1) expect(Buffer.byteLength(body)).toBeLessThan(100_000);
      return new Response(JSON.stringify({ archived_ids: task_ids.slice(1), error_ids: task_ids.slice(0, 1) }));
    });
    const total: Batch = {};
    await sendBatch({ queue: 'q', state: 'pending' }, 'archive', ids, total);
    return { requests, total };
  }
  afterEach(() => void vi.unstubAllGlobals());

  it('has up to 500 ids', async () => {
    const ids = Array.from({ length: 1001 }, (_, index) => `${index}`);
    const { requests, total } = await send(ids);
    expect(requests.map(({ length }) => length)).toEqual([500, 500, 1]);
    expect(requests.flat()).toEqual(ids);
    expect(total).toMatchObject({ error_ids: ['0', '500', '1000'] });
    expect(total['archived_ids']).toHaveLength(998);
    expect((await send([])).requests).toEqual([]);
  });

  it.each([
    ['long', 'x'.repeat(1000)],
    ['of letters that take several bytes', 'ü€'.repeat(200)],
    ['of characters that JSON escapes', '"\u0001'.repeat(130)],
  ])('fits into the 100 kB that Express takes when ids are %s', async (_, long) => {
    const ids = Array.from({ length: 500 }, (_, index) => `${index}${long}`);
    const { requests } = await send(ids);
    expect(requests.flat()).toEqual(ids);
    expect(requests.length).toBeLessThan(12);
  });

  it('sends an id alone that exceeds the limit', async () => {
    const long = 'x'.repeat(200_000);
    expect((await send([long])).requests).toEqual([[long]]);
  });
});
