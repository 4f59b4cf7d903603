import { MemoryBroker } from '../broker/memory/memory-broker.js';
import { floorSeconds, ManualClock, SystemClock } from '../clock.js';

/**
 * The broker for tests: everything in this process, and a clock that stands still until the test moves it. No server is started on
 * it; tasks run when an AsynqTester says so.
 *
 * @example
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker)
 */
export class InMemoryBroker extends MemoryBroker {
  declare readonly clock: ManualClock;

  constructor() {
    // A whole second, the smallest step of asynq's times: what is to start in 10 minutes starts after 10 minutes, not after 601 s.
    super(new ManualClock(floorSeconds(new SystemClock().now()) * 1000), { manual: true });
  }
}
