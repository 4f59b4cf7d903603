/** Tokens that bound how many tasks do something at the same time, in the whole fleet: asynq's x/rate (section 8.4). */
export interface LimitingBroker {
  /**
   * Takes one of the `max` tokens of a scope for a task; answers whether it has one now. Who has one keeps it, and only its
   * deadline moves. Tokens whose deadline (Unix seconds) has passed are free: those of crashed holders come back so.
   */
  acquireToken(scope: string, taskId: string, max: number, deadline: number): Promise<boolean>;
  /** Answers whether the task held a token. */
  releaseToken(scope: string, taskId: string): Promise<boolean>;
}
