import { createHash } from 'node:crypto';

/** What two servers must have in common to stand in for each other. */
export interface CrewWork {
  /** Whether it runs tasks; else it only aggregates groups. */
  readonly fetches: boolean;
  readonly queues: readonly string[];
  /** The groups that it aggregates, and when. */
  readonly aggregates: readonly string[];
  readonly policies: readonly unknown[];
}

export function crewName({ fetches, queues, aggregates, policies }: CrewWork): string {
  const work = [fetches, queues.toSorted(), aggregates.toSorted(), aggregates.length > 0 ? policies : []];
  return createHash('sha1').update(JSON.stringify(work)).digest('hex').slice(0, 20);
}
