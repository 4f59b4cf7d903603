import { MemoryBroker } from '../broker/memory/memory-broker.js';
import { floorSeconds, ManualClock, SystemClock } from '../clock.js';

/**
 * The broker for tests: all in this process, with a clock that only the test moves. No server is
 * started on it; an AsynqTester runs tasks.
 *
 * @example
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker)
 */
export class InMemoryBroker extends MemoryBroker {
  declare readonly clock: ManualClock;

  constructor() {
    // A whole second, as asynq's times: a task due in 10 minutes starts after 600 s, not after 601
    // s.
    super(new ManualClock(floorSeconds(new SystemClock().now()) * 1000), { manual: true });
  }
}
