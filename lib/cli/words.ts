/** Numbers as people read them. */
export const countTasks = (count: number): string => (count === 1 ? '1 task' : `${count} tasks`);

/** Of attempts: `1.25%`. */
export const errorRate = (processed: number, failed: number): string =>
  processed === 0 ? 'N/A' : `${((failed / processed) * 100).toFixed(2)}%`;

export function formatBytes(bytes: number): string {
  const [unit, size] = bytes < 1e6 ? ['kB', 1e3] : bytes < 1e9 ? ['MB', 1e6] : ['GB', 1e9];
  return bytes < 1e3 ? `${bytes} B` : `${(bytes / Number(size)).toFixed(1)} ${unit}`;
}
