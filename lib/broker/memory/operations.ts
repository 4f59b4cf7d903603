import type { OperationsRole } from '../operations.js';
import type { MemoryState } from './memory-state.js';

/** There is no server to describe. */
export class MemoryOperations implements OperationsRole {
  constructor(private readonly state: MemoryState) {}

  async storeInfo(): Promise<never[]> {
    this.state.assertOpen();
    return [];
  }

  async redisInfo(): Promise<undefined> {
    this.state.assertOpen();
  }

  async clusterLocation(): Promise<undefined> {
    this.state.assertOpen();
  }
}
