/** Where a task is. */
export interface TaskPlace {
  readonly queue: string;
  readonly id: string;
}
