/** What is read of a step. */
interface Step {
  readonly name: string;
  readonly after: readonly string[];
}

/**
 * Removes steps that wait for nothing, again and again; what remains waits in a circle.
 *
 * @param steps of different names; others that they wait for do not count
 * @returns the names on the way round, the first again at the end
 */
export function findCycle(steps: readonly Step[]): string[] | undefined {
  const missing = new Map(steps.map(({ name }) => [name, 0]));
  const dependents = new Map<string, string[]>();
  for (const { name, after } of steps) {
    for (const other of after) {
      if (!missing.has(other)) continue;
      missing.set(name, missing.get(name)! + 1);
      const list = dependents.get(other);
      if (list) list.push(name);
      else dependents.set(other, [name]);
    }
  }
  const free = [...missing.keys()].filter((name) => missing.get(name) === 0);
  for (let name = free.pop(); name !== undefined; name = free.pop()) {
    missing.delete(name);
    for (const dependent of dependents.get(name) ?? []) {
      const left = missing.get(dependent)! - 1;
      missing.set(dependent, left);
      if (left === 0) free.push(dependent);
    }
  }
  return missing.size === 0 ? undefined : walkCycle(steps, missing);
}

/** Each step left waits for another that is left: going back from any of them ends in the circle. */
function walkCycle(steps: readonly Step[], left: ReadonlyMap<string, number>): string[] {
  const before = new Map(steps.map(({ name, after }) => [name, after]));
  const path: string[] = [];
  const positions = new Map<string, number>();
  let [name] = left.keys();
  while (!positions.has(name!)) {
    positions.set(name!, path.length);
    path.push(name!);
    name = before.get(name!)!.find((other) => left.has(other));
  }
  return [...path.slice(positions.get(name!)), name!].reverse();
}

/** Whether new steps of a run can never begin, whatever else it has: they wait for each other in a circle. */
export function waitInCircle(steps: readonly Step[]): boolean {
  const names = new Set(steps.map(({ name }) => name));
  return names.size === steps.length && findCycle(steps) !== undefined;
}
