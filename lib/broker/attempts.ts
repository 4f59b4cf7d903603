/** What the end of an attempt leaves in the history of its task, which is stored in the hash of the task and goes with it. */
export interface AttemptNote {
  /** As `encodeAttempt` writes it. */
  readonly text: string;
  /** How many entries the task keeps, with this one: older ones are dropped. 1 to {@link MAX_ATTEMPTS}. */
  readonly most: number;
}

/** No task keeps more. */
export const MAX_ATTEMPTS = 100;
