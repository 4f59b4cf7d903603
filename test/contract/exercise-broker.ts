import { afterEach, beforeEach, describe } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { Driver, type MakeWorld } from './driver.js';
import { exerciseActions } from './suite/actions.js';
import { exerciseAggregation } from './suite/aggregation.js';
import { exerciseArchive } from './suite/archive.js';
import { exerciseBytes } from './suite/bytes.js';
import { exerciseCancellation } from './suite/cancellation.js';
import { exerciseCounters } from './suite/counters.js';
import { exerciseDelayedGroups } from './suite/delayed-groups.js';
import { exerciseDeletion } from './suite/deletion.js';
import { exerciseEnqueue } from './suite/enqueue.js';
import { exerciseEventStream } from './suite/event-stream.js';
import { exerciseInspection } from './suite/inspection.js';
import { exerciseLeases } from './suite/leases.js';
import { exerciseLimiting } from './suite/limiting.js';
import { exerciseListing } from './suite/listing.js';
import { exerciseMaintenance } from './suite/maintenance.js';
import { exerciseMonitoring } from './suite/monitoring.js';
import { exerciseMoving } from './suite/moving.js';
import { exerciseNumbers } from './suite/numbers.js';
import { exerciseScheduling } from './suite/scheduling.js';
import { exercisePublished } from './suite/published.js';
import { exerciseSettlements } from './suite/settlements.js';
import { exerciseTake } from './suite/take.js';
import { exerciseTransitions } from './suite/transitions.js';
import { exerciseUnique } from './suite/unique.js';
import { exerciseWake } from './suite/wake.js';

/** Whole seconds, so that a test says with its own words where a fraction of a second matters. */
const startOfSecond = (): number => Math.floor(Date.now() / 1000) * 1000;

/** The contract of `lib/broker/broker.ts`: one suite, which every broker must pass. */
export function exerciseBroker(name: string, makeWorld: MakeWorld): void {
  describe(name, () => {
    let driver: Driver;
    beforeEach(async () => {
      const clock = new ManualClock(startOfSecond());
      driver = new Driver(await makeWorld(clock), clock);
    });
    afterEach(() => driver.world.cleanup());

    const current = (): Driver => driver;
    exerciseEnqueue(current);
    exerciseUnique(current);
    exerciseTake(current);
    exerciseSettlements(current);
    exerciseCounters(current);
    exerciseLeases(current);
    exerciseMaintenance(current);
    exerciseAggregation(current);
    exerciseArchive(current);
    exerciseTransitions(current);
    exerciseBytes(current);
    exerciseInspection(current);
    exerciseListing(current);
    exerciseNumbers(current);
    exerciseActions(current);
    exerciseMoving(current);
    exerciseDelayedGroups(current);
    exerciseDeletion(current);
    exercisePublished(current);
    exerciseMonitoring(current);
    exerciseCancellation(current);
    exerciseLimiting(current);
    exerciseScheduling(current);
    exerciseEventStream(current);
    exerciseWake(current);
  });
}
