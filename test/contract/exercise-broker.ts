import { test as base, describe } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Driver, type DriverTest, type MakeWorld, START } from './driver.js';
import { exerciseActions } from './suite/actions.js';
import { exerciseAggregation } from './suite/aggregation.js';
import { exerciseArchive } from './suite/archive.js';
import { exerciseBatches } from './suite/batches.js';
import { exerciseBounded } from './suite/bounded.js';
import { exerciseBytes } from './suite/bytes.js';
import { exerciseCancellation } from './suite/cancellation.js';
import { exerciseCosts } from './suite/costs.js';
import { exerciseCounters } from './suite/counters.js';
import { exerciseDelayedGroups } from './suite/delayed-groups.js';
import { exerciseDependencies } from './suite/dependencies.js';
import { exerciseDeletion } from './suite/deletion.js';
import { exerciseEnqueue } from './suite/enqueue.js';
import { exerciseEventStream } from './suite/event-stream.js';
import { exerciseFairness } from './suite/fairness.js';
import { exerciseFairnessKeys } from './suite/fairness-keys.js';
import { exerciseInspection } from './suite/inspection.js';
import { exerciseLeases } from './suite/leases.js';
import { exerciseLinkNews } from './suite/link-news.js';
import { exerciseHeld } from './suite/held.js';
import { exerciseLimiting } from './suite/limiting.js';
import { exerciseListing } from './suite/listing.js';
import { exerciseMaintenance } from './suite/maintenance.js';
import { exerciseMonitoring } from './suite/monitoring.js';
import { exerciseMoving } from './suite/moving.js';
import { exerciseNumbers } from './suite/numbers.js';
import { exerciseExplain } from './suite/explain.js';
import { exerciseFilteredActions } from './suite/filtered-actions.js';
import { exerciseObstacles } from './suite/obstacles.js';
import { exerciseRepeats } from './suite/repeats.js';
import { exerciseRows } from './suite/rows.js';
import { exerciseScheduling } from './suite/scheduling.js';
import { exerciseSeats } from './suite/seats.js';
import { exercisePublished } from './suite/published.js';
import { exerciseSettlements } from './suite/settlements.js';
import { exerciseTake } from './suite/take.js';
import { exerciseTransitions } from './suite/transitions.js';
import { exerciseUnique } from './suite/unique.js';
import { exerciseWake } from './suite/wake.js';
import { exerciseWorkflows } from './suite/workflows.js';

/** A test with a driver: each test gets a new broker. */
export const driverTest = (makeWorld: MakeWorld): DriverTest =>
  base.extend('driver', async ({}, { onCleanup }) => {
    const clock = new ManualClock(START);
    const driver = new Driver(await makeWorld(clock), clock);
    onCleanup(() => driver.world.cleanup());
    return driver;
  });

/** The contract of `lib/broker/broker.ts`: every broker must pass this suite. */
export function exerciseBroker(name: string, it: DriverTest): void {
  describe(name, () => {
    exerciseEnqueue(it);
    exerciseBounded(it);
    exerciseUnique(it);
    exerciseRepeats(it);
    exerciseRows(it);
    exerciseTake(it);
    exerciseSettlements(it);
    exerciseCounters(it);
    exerciseLeases(it);
    exerciseMaintenance(it);
    exerciseAggregation(it);
    exerciseArchive(it);
    exerciseTransitions(it);
    exerciseBytes(it);
    exerciseFairness(it);
    exerciseFairnessKeys(it);
    exerciseInspection(it);
    exerciseListing(it);
    exerciseNumbers(it);
    exerciseActions(it);
    exerciseMoving(it);
    exerciseDelayedGroups(it);
    exerciseDeletion(it);
    exercisePublished(it);
    exerciseMonitoring(it);
    exerciseSeats(it);
    exerciseCancellation(it);
    exerciseLimiting(it);
    exerciseHeld(it);
    exerciseCosts(it);
    exerciseObstacles(it);
    exerciseExplain(it);
    exerciseFilteredActions(it);
    exerciseScheduling(it);
    exerciseEventStream(it);
    exerciseWake(it);
    exerciseDependencies(it);
    exerciseBatches(it);
    exerciseWorkflows(it);
    exerciseLinkNews(it);
  });
}
