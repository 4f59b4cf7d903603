/** Numbers as people read them. */
export const countTasks = (count: number): string => (count === 1 ? '1 task' : `${count} tasks`);

/** Of attempts: `1.25%`. */
export const errorRate = (processed: number, failed: number): string =>
  processed === 0 ? 'N/A' : `${((failed / processed) * 100).toFixed(2)}%`;
