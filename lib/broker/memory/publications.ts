import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import type { PublicationsRole, PublishedServer } from '../inspection.js';
import type { MemoryState } from './memory-state.js';
import type { MemoryMonitoring } from './monitoring.js';
import type { SchedulerPublications } from './scheduler-publications.js';

export class MemoryPublications implements PublicationsRole {
  constructor(
    private readonly state: MemoryState,
    private readonly monitoring: MemoryMonitoring,
    private readonly schedulers: SchedulerPublications,
  ) {}

  async servers(): Promise<PublishedServer[]> {
    this.state.assertOpen();
    return this.monitoring.living(this.state.now);
  }

  async schedulerEntries(): Promise<SchedulerEntry[]> {
    this.state.assertOpen();
    return this.schedulers.entries(this.state.now);
  }

  async enqueueEvents(entryId: string, offset: number, size: number): Promise<SchedulerEnqueueEvent[]> {
    this.state.assertOpen();
    return this.schedulers
      .events(entryId, this.state.now)
      .toReversed()
      .slice(offset, offset + size);
  }
}
