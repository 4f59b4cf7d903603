import { floorSeconds } from '../../../clock.js';
import type { EnqueueStatus } from '../../enqueue-request.js';
import { type Caused, type LinkedRequest } from '../../links.js';
import {
  type BatchCallback,
  type BatchesRole,
  type BatchProgress,
  type Chunk,
  type NewBatch,
  CHUNK_SECONDS,
  checkBatch,
  checkMembers,
  checkReservation,
  memberOf,
  taskIdOfMember,
} from '../../batches.js';
import { wellFormed } from '../queue-store.js';
import type { Ended, LinkEngine } from './engine.js';
import { newTask } from './new-task.js';
import { StoredBatch } from './stored-batch.js';
import { ARCHIVED, DELETED } from './texts.js';

/** How many members one pass looks at, per batch. */
const LOOKED_AT = 2_000;

const NOTHING: Caused = { parcels: [] };

/** Batches in process. A home sees its parts: what they report to it in Redis, it reads here. */
export class MemoryBatches implements BatchesRole {
  /** By id, in the order in which they were opened. */
  private readonly stored = new Map<string, StoredBatch>();

  constructor(private readonly engine: LinkEngine) {
    engine.endings.push((ended) => this.settle(ended));
    engine.keepers.push((place) => this.findEnds(place));
    engine.holders.push((place) => (engine.find(place)?.parts.size ?? 0) > 0);
    engine.homes.push((place) => [...this.stored.values()].some(({ home }) => home === place));
    engine.onTimer['batch'] = (_, id) => this.due(id);
    engine.onTimer['chunk'] = (_, about) => this.giveUp(about);
  }

  async open(home: string, batch: NewBatch): Promise<Caused> {
    checkBatch(batch);
    const place = wellFormed(home);
    return this.engine.cause(place, (store, now) => {
      if (this.stored.has(batch.id)) return NOTHING;
      store.listed = true;
      for (const { message } of Object.values(batch.callbacks)) this.engine.store(message.queue).listed = true;
      this.stored.set(batch.id, new StoredBatch(place, batch, now));
      this.engine.place(place).timers.set(`batch ${batch.id}`, batch.closeBy);
      return NOTHING;
    });
  }

  async reserve(
    home: string,
    id: string,
    requests: readonly { readonly queue: string; readonly count: number }[],
    byMember = false,
  ): Promise<{ readonly status: 'reserved' | 'missing' | 'ended'; readonly chunks: readonly Chunk[] }> {
    checkReservation(id, requests);
    return this.engine.change(home, (_, now) => {
      const batch = this.find(home, id);
      if (!batch) return { status: 'missing', chunks: [] };
      if (batch.state === 'succeeded' || (batch.state === 'completed' && !byMember))
        return { status: 'ended', chunks: [] };
      const { timers } = this.engine.place(batch.home);
      if (batch.hasEnded) {
        batch.state = 'closed';
        batch.endedAt = undefined;
        timers.delete(`batch ${id}`);
      }
      const chunks = requests.map(({ queue, count }) => {
        const base = batch.reserve(wellFormed(queue), count);
        timers.set(`chunk ${id} ${base}`, floorSeconds(now) + CHUNK_SECONDS);
        return { batch: id, home, queue, base, count };
      });
      return { status: 'reserved', chunks };
    });
  }

  async add(
    chunk: Chunk,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly status: 'added' | 'void'; readonly statuses: readonly EnqueueStatus[] }> {
    checkMembers(chunk, requests);
    const queue = wellFormed(chunk.queue);
    return this.engine.cause(queue, (store) => {
      const messages = requests.map((request) => this.engine.encode(request));
      const batch = this.stored.get(chunk.batch);
      if (!batch || batch.given.has(chunk.base)) return { ...NOTHING, status: 'void', statuses: [] };
      store.listed = true;
      const part = batch.part(queue);
      this.engine.place(queue).parts.set(chunk.batch, batch.home);
      const taken = requests.some((_, index) => part.has(chunk.base + index));
      const statuses = requests.map((request, index): EnqueueStatus => {
        const status = taken ? 'conflict' : this.engine.create(queue, newTask(request), messages[index]);
        if (status === 'enqueued') part.add(chunk.base + index);
        return status;
      });
      return { ...NOTHING, status: 'added', statuses };
    });
  }

  async confirm(home: string, id: string, chunks: readonly { readonly base: number }[]): Promise<Caused> {
    return this.engine.cause(home, () => {
      for (const { base } of chunks) this.confirmOne(id, base);
      this.decide(id);
      return NOTHING;
    });
  }

  async close(home: string, id: string): Promise<Caused & { readonly status: 'closed' | 'missing' }> {
    return this.engine.cause(home, () => {
      const batch = this.find(home, id);
      if (batch) this.closeOne(batch);
      return { ...NOTHING, status: batch ? 'closed' : 'missing' };
    });
  }

  async progress(home: string, id: string): Promise<BatchProgress | undefined> {
    this.engine.state.assertOpen();
    return this.find(home, id)?.progress();
  }

  async batches(home: string, { offset, size }: { readonly offset: number; readonly size: number }) {
    this.engine.state.assertOpen();
    const own = [...this.stored.values()].filter((batch) => batch.home === wellFormed(home)).reverse();
    return own.slice(offset, offset + size).map((batch) => batch.progress());
  }

  async delete(home: string, id: string): Promise<Caused & { readonly status: 'deleted' | 'missing' | 'running' }> {
    return this.engine.cause(home, () => {
      const batch = this.find(home, id);
      if (!batch) return { ...NOTHING, status: 'missing' };
      if (!batch.hasEnded) return { ...NOTHING, status: 'running' };
      this.remove(batch);
      return { ...NOTHING, status: 'deleted' };
    });
  }

  clear(): void {
    this.stored.clear();
  }

  private find(home: string, id: string): StoredBatch | undefined {
    const batch = this.stored.get(id);
    return batch?.home === wellFormed(home) ? batch : undefined;
  }

  private settle({ place, id, ok }: Ended): void {
    const member = memberOf(id);
    const batch = member && this.stored.get(member.batch);
    const part = batch?.parts.get(place);
    if (!member || !batch || !part?.has(member.number)) return;
    part.settle(member.number, ok);
    batch.died ||= part.dead > 0;
    this.decide(member.batch);
  }

  /** Members that were deleted, or moved to an end, without a notice. */
  private findEnds(place: string): number {
    let found = 0;
    for (const id of this.engine.find(place)?.parts.keys() ?? []) {
      for (const number of this.stored.get(id)?.parts.get(place)?.open(LOOKED_AT) ?? []) {
        if (this.look(place, taskIdOfMember(id, number))) found++;
      }
    }
    return found;
  }

  private look(place: string, id: string): boolean {
    const record = this.engine.store(place).tasks.get(id);
    if (record?.state === 'completed') this.engine.ended(place, id, true, '', record.result);
    else if (record?.state === 'archived') this.engine.ended(place, id, false, ARCHIVED);
    else if (!record) this.engine.ended(place, id, false, DELETED);
    else return false;
    return true;
  }

  private confirmOne(id: string, base: number): void {
    const batch = this.stored.get(id);
    if (!batch?.unconfirmed.delete(base)) return;
    this.engine.place(batch.home).timers.delete(`chunk ${id} ${base}`);
  }

  /** Nobody has confirmed a chunk in time: it has the members that were made, or will never have any. */
  private giveUp(about: string): void {
    const [id = '', base = ''] = about.split(' ');
    const batch = this.stored.get(id);
    const chunk = batch?.unconfirmed.get(Number(base));
    if (!batch || !chunk) return;
    const part = batch.parts.get(chunk.queue);
    const numbers = Array.from({ length: chunk.count }, (_, index) => Number(base) + index);
    if (!numbers.some((number) => part?.has(number))) batch.given.add(Number(base));
    this.confirmOne(id, Number(base));
    this.decide(id);
  }

  private closeOne(batch: StoredBatch): void {
    if (batch.state !== 'open') return;
    batch.state = 'closed';
    this.engine.place(batch.home).timers.delete(`batch ${batch.batch.id}`);
    this.decide(batch.batch.id);
  }

  /** Calls back what is due, and ends the batch when all have ended. */
  private decide(id: string): void {
    const batch = this.stored.get(id);
    if (!batch || batch.state === 'open' || batch.state === 'succeeded') return;
    if (batch.died) this.call(batch, 'death');
    const { total, pending, failed } = batch.progress();
    if (pending > 0 || batch.unconfirmed.size > 0) return;
    const state = failed === 0 ? 'succeeded' : 'completed';
    if (state !== batch.state) {
      batch.state = state;
      batch.endedAt = this.engine.now;
      const until = Math.ceil(batch.endedAt / 1000) + batch.batch.retention;
      this.engine.place(batch.home).timers.set(`batch ${id}`, until);
      const { home, endedAt, openedAt } = batch;
      const news = { queue: home, id, name: batch.batch.name, state, total, failed, openedAt, endedAt } as const;
      this.engine.note({ kind: 'batch', ...news });
    }
    this.call(batch, 'complete');
    if (failed === 0) this.call(batch, 'success');
  }

  private call(batch: StoredBatch, name: BatchCallback): void {
    const request = batch.batch.callbacks[name];
    if (!request || batch.called.has(name)) return;
    batch.called.add(name);
    const { id, name: named } = batch.batch;
    this.engine.note({ kind: 'callback', queue: batch.home, id, name: named, callback: name });
    const { wait } = request;
    // What it waits for, and for how long, counts from now.
    const deadline = (wait?.deadline ?? 0) + floorSeconds(this.engine.now) - floorSeconds(batch.openedAt);
    const called = wait ? { ...request, wait: { ...wait, deadline } } : request;
    this.engine.create(wellFormed(request.message.queue), newTask(called));
  }

  private due(id: string): void {
    const batch = this.stored.get(id);
    if (batch?.state === 'open') this.closeOne(batch);
    else if (batch?.hasEnded) this.remove(batch);
  }

  private remove(batch: StoredBatch): void {
    const { id } = batch.batch;
    for (const queue of batch.parts.keys()) this.engine.find(queue)?.parts.delete(id);
    this.engine.find(batch.home)?.timers.delete(`batch ${id}`);
    this.stored.delete(id);
  }
}
