/** A queue among which slots are divided. */
export interface Share {
  readonly priority: number;
  /** Tasks believed to wait; `Infinity` when there may be some. */
  readonly backlog: number;
}

/** With more queues than this, a draw is for several slots: an exchange costs more than a task of it. */
const MANY_QUEUES = 8;
/** So many of them are drawn in a round, about. */
const QUEUES_PER_ROUND = 2;

/**
 * Divides free slots among queues, so that batches give the shares that asynq's polling of single
 * tasks gives in the long run.
 *
 * For each task asynq shuffles the weighted list of queues and takes from the first that has one.
 * A queue with tasks is first with the probability of its weight, divided by the sum of the weights
 * of all queues with tasks. Each slot here is one such draw. With many queues a draw is
 * for several slots, which gives the same shares over some rounds. Strict: the highest priority first, until its
 * backlog is covered; queues of equal priority are drawn evenly.
 *
 * @returns slots per share, in order
 */
export function allot(free: number, shares: readonly Share[], strict: boolean, random = Math.random): number[] {
  const taken = shares.map(() => 0);
  if (!strict) {
    draw(free, shares, [...shares.keys()], taken, random);
    return taken;
  }
  let left = free;
  const levels = [...new Set(shares.map(({ priority }) => priority))].sort((a, b) => b - a);
  for (const level of levels) {
    const equals = [...shares.keys()].filter((index) => shares[index]!.priority === level);
    left -= draw(
      left,
      shares.map((share) => ({ ...share, priority: 1 })),
      equals,
      taken,
      random,
    );
  }
  return taken;
}

/** Draws among `candidates`; a queue drops out when its backlog is covered. */
function draw(
  slots: number,
  shares: readonly Share[],
  candidates: readonly number[],
  taken: number[],
  random: () => number,
): number {
  let open = candidates.filter((index) => shares[index]!.backlog > 0);
  const slotsPerDraw = open.length > MANY_QUEUES ? Math.ceil(slots / QUEUES_PER_ROUND) : 1;
  let drawn = 0;
  while (drawn < slots && open.length > 0) {
    if (open.length === 1) {
      const only = open[0]!;
      const rest = Math.min(slots - drawn, shares[only]!.backlog - taken[only]!);
      taken[only]! += rest;
      return drawn + rest;
    }
    const index = pick(open, shares, random);
    const given = Math.min(slotsPerDraw, slots - drawn, shares[index]!.backlog - taken[index]!);
    taken[index]! += given;
    drawn += given;
    if (taken[index]! >= shares[index]!.backlog) open = open.filter((other) => other !== index);
  }
  return drawn;
}

function pick(open: readonly number[], shares: readonly Share[], random: () => number): number {
  let sum = 0;
  for (const index of open) sum += shares[index]!.priority;
  let point = random() * sum;
  for (const index of open) {
    point -= shares[index]!.priority;
    if (point < 0) return index;
  }
  return open[open.length - 1]!;
}
