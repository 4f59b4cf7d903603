import type { BoundedStatus, EnqueueStatus } from '../../enqueue-request.js';
import { noRoom } from '../producer.js';
import {
  type Caused,
  type LinkedRequest,
  type LinksRole,
  type Parcel,
  type PassReply,
  type Prerequisite,
  type StoredWait,
  type WatchRequest,
} from '../../links.js';
import { wellFormed } from '../queue-store.js';
import type { Bodies, Body, Kind } from './bodies.js';
import type { LinkEngine } from './engine.js';
import { newTask } from './new-task.js';
import type { Edge, WaitRecord } from './place.js';
import { StepCalls } from './step-calls.js';
import { Waits } from './waits.js';

/** How many waits and ended tasks one pass deals with. */
const PASS_LIMIT = 1_000;

const NOTHING: Caused = { parcels: [] };

export class MemoryLinks implements LinksRole {
  readonly stepCalls: StepCalls;
  private readonly waits: Waits;

  constructor(private readonly engine: LinkEngine) {
    this.waits = new Waits(engine);
    this.stepCalls = new StepCalls(engine, (place, id, watcher) => this.waits.watch(place, id, watcher));
  }

  enqueue(
    queue: string,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }> {
    type Reply = Caused & { readonly statuses: readonly EnqueueStatus[] };
    return this.enqueueBounded(queue, requests, Infinity) as Promise<Reply>;
  }

  async enqueueBounded(
    queue: string,
    requests: readonly LinkedRequest[],
    maxPending: number,
  ): Promise<Caused & { readonly statuses: readonly BoundedStatus[] }> {
    const place = wellFormed(queue);
    return this.engine.cause(place, (store) => {
      const messages = requests.map((request) => this.engine.encode(request));
      if (requests.length > 0) store.listed = true;
      const statuses = requests.map(
        (request, index) =>
          (request.wait ? undefined : noRoom(store, request, maxPending, this.engine.now)) ??
          this.engine.create(place, newTask(request), messages[index]),
      );
      return { ...NOTHING, statuses };
    });
  }

  async watch(
    queue: string,
    requests: readonly WatchRequest[],
  ): Promise<Caused & { readonly found: readonly ('watched' | 'missing')[] }> {
    const place = wellFormed(queue);
    return this.engine.cause(place, () => {
      const found = requests.map(({ id, waiting, missing }) => {
        const { n, until } = waiting;
        const watcher = { k: 'w', to: wellFormed(waiting.queue), id: wellFormed(waiting.id), n, d: until } as const;
        return this.waits.watch(place, wellFormed(id), watcher, missing) ? 'watched' : 'missing';
      });
      return { ...NOTHING, found };
    });
  }

  async deliver(place: string, parcels: readonly Parcel[]): Promise<Caused> {
    return this.engine.cause(wellFormed(place), () => {
      for (const { body, data } of parcels) {
        const { kind, ...rest } = JSON.parse(body) as Body;
        this.engine.post(wellFormed(place), kind, rest as Bodies[Kind], data);
      }
      return NOTHING;
    });
  }

  /** A body is applied at once: nothing is kept. */
  async acknowledge(): Promise<void> {
    this.engine.state.assertOpen();
  }

  async postpone(): Promise<void> {
    this.engine.state.assertOpen();
  }

  async check(queue: string, ids: readonly string[]): Promise<Caused> {
    const place = wellFormed(queue);
    return this.engine.cause(place, () => {
      for (const id of ids) this.waits.check(place, wellFormed(id));
      return NOTHING;
    });
  }

  async waitOf(queue: string, id: string): Promise<StoredWait | undefined> {
    this.engine.state.assertOpen();
    return this.describe(queue, id);
  }

  /** As {@link waitOf}, at once. */
  describe(queue: string, id: string): StoredWait | undefined {
    const place = wellFormed(queue);
    const store = this.engine.state.store(place);
    const name = wellFormed(id);
    const after = store.tasks.get(name)?.after;
    return after && describeWait(after, store.waiting.score(name), this.waits.isCancelled(place, name, after));
  }

  async places(): Promise<string[]> {
    this.engine.state.assertOpen();
    return this.engine.names();
  }

  async lease(place: string, owner: string, ttl: number): Promise<boolean> {
    this.engine.state.assertOpen();
    const found = this.engine.place(wellFormed(place));
    const { now } = this.engine;
    if (found.lease && found.lease.owner !== owner && found.lease.expiresAt > now) return false;
    found.lease = { owner, expiresAt: now + ttl };
    return true;
  }

  async keep(place: string): Promise<PassReply> {
    const name = wellFormed(place);
    return this.engine.cause(name, (store) => {
      let settled = this.waits.timeOut(name, PASS_LIMIT) + this.findEnds(name) + this.runTimers(name);
      for (const keeper of this.engine.keepers) settled += keeper(name);
      this.engine.work();
      if (store.tasks.size > 0 || this.engine.state.keepsMore(name)) store.listed = true;
      return { ...NOTHING, settled, late: 0, empty: this.engine.isEmpty(name) };
    });
  }

  /** Tasks that ended without a notice: somebody deleted them, or archived them. */
  private findEnds(place: string): number {
    const ids = [...(this.engine.find(place)?.links.keys() ?? [])];
    return ids.filter((id) => this.waits.check(place, id)).length;
  }

  private runTimers(place: string): number {
    const timers = this.engine.find(place)?.timers ?? new Map<string, number>();
    const due = [...timers].filter(([, at]) => at * 1000 <= this.engine.now);
    for (const [text] of due) {
      timers.delete(text);
      const [kind = '', ...about] = text.split(' ');
      this.engine.onTimer[kind]?.(place, about.join(' '));
    }
    return due.length;
  }
}

const prerequisiteOf = ({ from, of }: Edge): Prerequisite =>
  from.startsWith('~') ? { type: from.slice(1), key: of } : { queue: from, id: of };

const describeWait = (
  { edges, onFailure, onTimeout }: WaitRecord,
  deadline: number | undefined,
  cancelled: boolean,
): StoredWait => ({
  edges: edges.map((edge) => ({
    prerequisite: prerequisiteOf(edge),
    state: edge.state,
    ...(edge.reason === undefined ? {} : { reason: edge.reason }),
  })),
  onFailure,
  onTimeout,
  deadline,
  cancelled,
});
