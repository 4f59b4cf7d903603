import fc from 'fast-check';
import { FAILURE_POLICIES, type FailurePolicy, TIMEOUT_POLICIES, type TimeoutPolicy } from '../../lib/broker/links.js';
import type { Ending } from './link-session.js';

/** A prerequisite in a random history: one of the tasks that were submitted before, or any task with a key. */
export type PickedPrerequisite = { readonly task: number } | { readonly key: string };

/**
 * One step of a history over dependencies: plain values only, so that a failing history can be read and run again. `lost`: the
 * parcels that the step causes get lost; they stay in their outboxes.
 */
export type LinkStep = { readonly lost: boolean } & (
  | {
      readonly do: 'submit';
      readonly queue: string;
      /** None: a task that waits for nothing. */
      readonly after: readonly PickedPrerequisite[];
      /** Its own key, if any. */
      readonly key: string | undefined;
      readonly onFailure: FailurePolicy;
      readonly onTimeout: TimeoutPolicy;
      /** Seconds from now. */
      readonly waitAtMost: number;
      /** Seconds from now. */
      readonly delay: number | undefined;
      /** The client dies between its registrations and the task. */
      readonly dies: boolean;
    }
  /** Claims all that is pending in a queue. */
  | { readonly do: 'claim'; readonly queue: string }
  /** Ends one of the active tasks; `unseen`: by a server that knows no links. */
  | { readonly do: 'end'; readonly task: number; readonly ending: Ending | 'retry' | 'unseen' }
  /** An operator changes one of the tasks; `tells`: the links are checked afterwards. */
  | {
      readonly do: 'act';
      readonly task: number;
      readonly action: 'run' | 'archive' | 'delete';
      readonly tells: boolean;
    }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'forward'; readonly queue: string }
  | { readonly do: 'keep' }
);

export const LINK_QUEUES = ['default', 'b {x}:', 'third'] as const;
export const LINK_KEYS = ['k', 'ü "1"', 'a b'] as const;

const queue = fc.constantFrom(...LINK_QUEUES);
const key = fc.constantFrom(...LINK_KEYS);
const task = fc.nat({ max: 40 });
const prerequisite: fc.Arbitrary<PickedPrerequisite> = fc.oneof(
  { arbitrary: fc.record({ task }), weight: 3 },
  { arbitrary: fc.record({ key }), weight: 2 },
);

const steps = (lost: fc.Arbitrary<boolean>): fc.Arbitrary<LinkStep> =>
  fc.oneof(
    {
      arbitrary: fc.record({
        do: fc.constant('submit' as const),
        lost,
        queue,
        after: fc.oneof(fc.constant([]), fc.array(prerequisite, { minLength: 1, maxLength: 4 })),
        key: fc.option(key, { nil: undefined, freq: 2 }),
        onFailure: fc.constantFrom(...FAILURE_POLICIES),
        onTimeout: fc.constantFrom(...TIMEOUT_POLICIES),
        waitAtMost: fc.constantFrom(5, 20, 3600),
        delay: fc.option(fc.constantFrom(5, 30), { nil: undefined, freq: 6 }),
        dies: fc.oneof({ arbitrary: fc.constant(false), weight: 9 }, { arbitrary: fc.constant(true), weight: 1 }),
      }),
      weight: 6,
    },
    { arbitrary: fc.record({ do: fc.constant('claim' as const), lost, queue }), weight: 4 },
    {
      arbitrary: fc.record({
        do: fc.constant('end' as const),
        lost,
        task,
        ending: fc.constantFrom('done', 'done', 'complete', 'archive', 'archive', 'revoke', 'retry', 'unseen'),
      }),
      weight: 7,
    },
    {
      arbitrary: fc.record({
        do: fc.constant('act' as const),
        lost,
        task,
        action: fc.constantFrom('run', 'run', 'archive', 'delete'),
        tells: fc.boolean(),
      }),
      weight: 3,
    },
    {
      arbitrary: fc.record({ do: fc.constant('wait' as const), lost, seconds: fc.constantFrom(1, 6, 21) }),
      weight: 2,
    },
    { arbitrary: fc.record({ do: fc.constant('forward' as const), lost, queue }), weight: 1 },
    { arbitrary: fc.record({ do: fc.constant('keep' as const), lost }), weight: 2 },
  );

const history = (lost: fc.Arbitrary<boolean>): fc.Arbitrary<LinkStep[]> =>
  fc.array(steps(lost), { minLength: 10, maxLength: 60, size: 'max' });

/** Nothing gets lost: every broker is in the same state after each step. */
export const carriedHistory = history(fc.constant(false));

/** Parcels get lost: what happens in between depends on when the keeper passes, the end does not. */
export const lossyHistory = history(fc.boolean());
