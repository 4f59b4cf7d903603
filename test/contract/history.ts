import type { QueueLimits } from '../../lib/broker/broker.js';
import fc from 'fast-check';
import { type InspectorCall, inspectorCall } from './inspector-calls.js';

/**
 * A settlement in a random history; an even `lease` picks an unsettled lease, an odd one any
 * earlier lease.
 */
export interface SettlementStep {
  readonly lease: number;
  readonly kind: 'done' | 'complete' | 'retry' | 'archive' | 'archiveAsIs' | 'requeue' | 'wait';
  /**
   * How the lease is presented: as it is, with a wrong end, or with its true end only as
   * `renewing`.
   */
  readonly fence: 'true' | 'wrong' | 'renewing';
  /** Seconds from now, for the retry or the end of the retention. */
  readonly seconds: number;
  readonly flag: boolean;
  readonly text: string;
}

export interface EnqueueStep {
  readonly id: string;
  readonly route: 'pending' | 'scheduled' | 'group' | 'scheduledGroup';
  /** Seconds from now. */
  readonly seconds: number;
  readonly lock: string | undefined;
  readonly ttl: number;
  readonly payload: Uint8Array;
}

/**
 * One step of a history. Everything in it is a plain value, so that a failing history can be read
 * and run again.
 */
export type Step =
  | { readonly do: 'enqueue'; readonly queue: string; readonly items: readonly EnqueueStep[] }
  | {
      readonly do: 'exchange';
      readonly queue: string;
      readonly settle: readonly SettlementStep[];
      readonly take: number;
      readonly limits?: QueueLimits | undefined;
    }
  | { readonly do: 'extend'; readonly leases: readonly number[]; readonly seconds: number; readonly wrong: boolean }
  | { readonly do: 'writeResult'; readonly lease: number; readonly wrong: boolean; readonly result: Uint8Array }
  | { readonly do: 'move'; readonly seconds: number }
  | { readonly do: 'wake'; readonly queue: string; readonly waitlist: string; readonly count: number }
  | { readonly do: 'recover'; readonly queue: string; readonly grace: number; readonly limit: number }
  | { readonly do: 'trim' | 'expire'; readonly queue: string; readonly limit: number }
  | {
      readonly do: 'aggregate';
      readonly queue: string;
      readonly gracePeriod: number;
      readonly maxDelay: number;
      readonly maxSize: number;
      readonly end: 'finish' | 'delete' | 'archive' | 'leave';
      readonly made: EnqueueStep;
    }
  | { readonly do: 'forward' | 'pause' | 'resume' | 'repair' | 'reclaim' | 'repairGroups'; readonly queue: string }
  | { readonly do: 'nameGroup'; readonly queue: string; readonly id: string; readonly group: string }
  | { readonly do: 'getTask'; readonly queue: string; readonly id: string }
  | { readonly do: 'inspect'; readonly call: InspectorCall }
  | { readonly do: 'openSchedule'; readonly queue: string; readonly entry: string; readonly spec: string }
  | {
      readonly do: 'fire';
      readonly queue: string;
      readonly entry: string;
      /** Seconds from now. */
      readonly planned: number;
      readonly attempt: string;
      readonly skipUnfinished: boolean;
      readonly item: EnqueueStep;
    };

export const QUEUES = ['default', 'b {x}:'] as const;
export const WAITLISTS = ['l', 'ü'] as const;
const DAY = 86_400;

const queue = fc.constantFrom('default', 'default', ...QUEUES);
const id = fc.constantFrom('a', 'b', 'c', 'd:e', 'f g', 'ü', '🎉', '\uffee', 'half\ud800');
const entry = fc.constantFrom('e', 'e:ü');
const group = fc.constantFrom('g', 'g:h', 'ö');
const seconds = fc.oneof(fc.integer({ min: -5, max: 40 }), fc.integer({ min: -100 * DAY, max: 100 * DAY }));
const limit = fc.integer({ min: 1, max: 4 });
const lease = fc.oneof(fc.constantFrom(0, 2, 4, 6), fc.nat(30));
const bytes = fc.uint8Array({ maxLength: 6 });

const enqueueItem: fc.Arbitrary<EnqueueStep> = fc.record({
  id,
  route: fc.constantFrom('pending', 'pending', 'pending', 'scheduled', 'group', 'scheduledGroup'),
  seconds,
  lock: fc.option(fc.constantFrom('x', 'y'), { nil: undefined, freq: 2 }),
  ttl: fc.oneof(fc.integer({ min: 2, max: 60 }), fc.integer({ min: DAY, max: 200 * DAY })),
  payload: bytes,
});

const settlement: fc.Arbitrary<SettlementStep> = fc.record({
  lease,
  kind: fc.constantFrom('done', 'complete', 'retry', 'archive', 'archiveAsIs', 'requeue', 'wait', 'wait'),
  fence: fc.constantFrom('true', 'true', 'true', 'true', 'wrong', 'renewing'),
  seconds,
  flag: fc.boolean(),
  text: fc.string({ unit: 'binary', maxLength: 4 }),
});

const limits: fc.Arbitrary<QueueLimits> = fc.record({
  active: fc.nat(5),
  rate: fc.nat(5),
  window: fc.constantFrom(16_000, 16_001, 47_321), // long enough not to expire in Redis, which goes by real time
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('enqueue'), queue, items: fc.array(enqueueItem, { maxLength: 4 }) }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('exchange'),
      queue,
      settle: fc.array(settlement, { maxLength: 5 }),
      take: fc.nat(4),
      limits: fc.option(limits, { nil: undefined, freq: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('extend'),
      leases: fc.array(lease, { maxLength: 4 }),
      seconds: fc.integer({ min: 1, max: 90 }),
      wrong: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('writeResult'), lease, wrong: fc.boolean(), result: bytes }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('move'),
      seconds: fc.oneof(
        { weight: 5, arbitrary: fc.nat(60) },
        { weight: 1, arbitrary: fc.constantFrom(DAY, 30 * DAY, 91 * DAY) },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('recover'), queue, grace: fc.integer({ min: -40, max: 20 }), limit }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('trim', 'expire'), queue, limit }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'forward',
        'forward',
        'forward',
        'pause',
        'resume',
        'resume',
        'repair',
        'reclaim',
        'repairGroups',
      ),
      queue,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('aggregate'),
      queue,
      gracePeriod: fc.integer({ min: 0, max: 30 }),
      maxDelay: fc.integer({ min: 0, max: 30 }),
      maxSize: fc.nat(3),
      end: fc.constantFrom('finish', 'finish', 'delete', 'archive', 'leave'),
      made: enqueueItem,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wake'), queue, waitlist: fc.constantFrom(...WAITLISTS), count: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('nameGroup'), queue, id, group }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('getTask'), queue, id }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('inspect'), call: inspectorCall({ queue, id, group }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('openSchedule'), queue, entry, spec: fc.constantFrom('s', 'other') }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('fire'),
      queue,
      entry,
      planned: fc.integer({ min: -20, max: 20 }),
      attempt: fc.constantFrom('one', 'two', 'three'),
      skipUnfinished: fc.boolean(),
      item: enqueueItem,
    }),
  },
);

/**
 * A history of up to 57 steps, some thirty on average, that always begins with something to work
 * on.
 */
export const history: fc.Arbitrary<Step[]> = fc
  .tuple(fc.array(enqueueItem, { minLength: 3, maxLength: 6 }), fc.array(step, { maxLength: 55, size: 'max' }))
  .map(([items, steps]) => [
    { do: 'enqueue', queue: 'default', items },
    { do: 'exchange', queue: 'default', settle: [], take: 2 },
    ...steps,
  ]);
