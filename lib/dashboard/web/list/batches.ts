import { api, type BulkAction, type ListScope } from '../api/endpoints.js';

/** Ids in one request. */
const MAX_IDS = 500;
/** Bytes of ids in one request. By default Express refuses bodies over 100 kB. */
const MAX_BYTES = 90_000;

const encoder = new TextEncoder();
const bytesOf = (id: string): number => encoder.encode(JSON.stringify(id)).length + ','.length;

/** Cuts ids into batches that fit into a request each; an id that is longer than that is alone. */
function batchesOf(ids: readonly string[]): string[][] {
  const batches: string[][] = [];
  let room = 0;
  for (const id of ids) {
    const bytes = bytesOf(id);
    const last = batches.at(-1);
    if (!last || last.length >= MAX_IDS || bytes > room) {
      batches.push([id]);
      room = MAX_BYTES - bytes;
    } else {
      last.push(id);
      room -= bytes;
    }
  }
  return batches;
}

/** The replies to several batches, joined: ids by `archived_ids`, `error_ids` … */
export type Batch = Record<string, string[]>;

export async function sendBatch(
  scope: ListScope,
  action: BulkAction,
  ids: readonly string[],
  total: Batch,
): Promise<void> {
  for (const some of batchesOf(ids)) {
    const reply = await api.batch(scope, action, some);
    for (const [name, listed] of Object.entries(reply)) (total[name] ??= []).push(...(listed ?? []));
  }
}
