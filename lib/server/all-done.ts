/**
 * Waits for all, so that one that fails holds up no other, and answers what they answered.
 *
 * @throws what the first of those that failed threw
 */
export async function allDone<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
