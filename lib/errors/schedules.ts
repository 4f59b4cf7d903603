import { AsynqError } from './asynq-error.js';

/**
 * No running scheduler of this library has such a periodic entry: its process has ended, the entry was removed, the id is wrong, or it is an
 * entry of a Go scheduler, which knows no pause.
 */
export class PeriodicEntryNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_PERIODIC_ENTRY_NOT_FOUND';
  /** @param isGo whether a scheduler that knows no pause has it */
  constructor(
    readonly id: string,
    readonly isGo: boolean,
  ) {
    super(
      isGo
        ? `periodic entry ${JSON.stringify(id)} belongs to a scheduler of Go's asynq, which knows no pause: stop that scheduler, or remove the entry there`
        : `no running scheduler has a periodic entry ${JSON.stringify(id)}: AsynqInspector.schedulerEntries lists those there are`,
    );
  }
}
