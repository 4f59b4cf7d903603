/** A task in an event. */
export interface TaskRef {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
}
