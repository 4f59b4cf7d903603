import { describe, expect, it } from 'vitest';
import { allot, type Share } from '../../../lib/server/fetching/allot.js';

/** A repeatable generator: a failure is the same in every run. */
function generator(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** What asynq does (wire-protocol 5.3): for each task it shuffles the weighted list and takes from the first queue with tasks. */
function oneByOne(slots: number, shares: readonly Share[], random: () => number): number[] {
  const left = shares.map(({ backlog }) => backlog);
  const taken = shares.map(() => 0);
  for (let slot = 0; slot < slots; slot++) {
    const list = shares.flatMap(({ priority }, index) => Array.from({ length: priority }, () => index));
    for (let last = list.length - 1; last > 0; last--) {
      const other = Math.floor(random() * (last + 1));
      [list[last], list[other]] = [list[other]!, list[last]!];
    }
    const index = list.find((candidate) => left[candidate]! > 0);
    if (index === undefined) break;
    left[index]! -= 1;
    taken[index]! += 1;
  }
  return taken;
}

/** Share of each queue over many rounds in which every queue is refilled. */
function longRun(rounds: number, slots: number, shares: readonly Share[], take: (slots: number) => number[]): number[] {
  const sums = shares.map(() => 0);
  for (let round = 0; round < rounds; round++) take(slots).forEach((count, index) => (sums[index]! += count));
  const total = sums.reduce((a, b) => a + b, 0);
  return sums.map((sum) => sum / total);
}

describe('allot', () => {
  const weighted = [
    { priority: 6, backlog: Infinity },
    { priority: 3, backlog: Infinity },
    { priority: 1, backlog: Infinity },
  ];

  it.each([
    ['all queues full', weighted],
    ['one queue empty', [weighted[0]!, { priority: 3, backlog: 0 }, weighted[2]!]],
    ['a queue with fewer tasks than its share', [{ priority: 6, backlog: 4 }, weighted[1]!, weighted[2]!]],
  ])("gives the long-run shares of asynq's one-by-one polling: %s", (_, shares) => {
    const random = generator(7);
    const ours = longRun(4_000, 10, shares, (slots) => allot(slots, shares, false, random));
    const asynq = longRun(4_000, 10, shares, (slots) => oneByOne(slots, shares, random));
    ours.forEach((share, index) => expect(Math.abs(share - asynq[index]!)).toBeLessThan(0.012));
  });

  it('gives the weights themselves when all queues are full', () => {
    const random = generator(11);
    const shares = longRun(5_000, 10, weighted, (slots) => allot(slots, weighted, false, random));
    [0.6, 0.3, 0.1].forEach((weight, index) => expect(Math.abs(shares[index]! - weight)).toBeLessThan(0.01));
  });

  it('never exceeds the slots or a backlog, and leaves no slot free while tasks are known', () => {
    const random = generator(3);
    for (let round = 0; round < 500; round++) {
      const shares = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
        priority: 1 + Math.floor(random() * 9),
        backlog: Math.floor(random() * 12),
      }));
      const slots = Math.floor(random() * 20);
      const strict = random() < 0.5;
      const taken = allot(slots, shares, strict, random);
      const waiting = shares.reduce((sum, { backlog }) => sum + backlog, 0);
      expect(taken.reduce((a, b) => a + b, 0)).toBe(Math.min(slots, waiting));
      taken.forEach((count, index) => expect(count).toBeLessThanOrEqual(shares[index]!.backlog));
    }
  });

  it('serves the highest priority first when strict, then the next', () => {
    const shares = [
      { priority: 1, backlog: 50 },
      { priority: 9, backlog: 3 },
      { priority: 5, backlog: 4 },
    ];
    expect(allot(10, shares, true)).toEqual([3, 3, 4]);
    expect(allot(2, shares, true)).toEqual([0, 2, 0]);
  });

  it('shares evenly among equals when strict', () => {
    const random = generator(5);
    const equals = [
      { priority: 2, backlog: Infinity },
      { priority: 2, backlog: Infinity },
    ];
    const [first] = longRun(2_000, 5, equals, (slots) => allot(slots, equals, true, random));
    expect(Math.abs(first! - 0.5)).toBeLessThan(0.03);
  });

  describe('with a hundred busy queues', () => {
    const many = Array.from({ length: 100 }, (_, index) => ({ priority: 1 + (index % 4), backlog: Infinity }));
    const SUM = 250;

    it('gives several slots to each of a few queues, and the weights themselves in the long run', () => {
      const random = generator(17);
      const rounds = 20_000;
      const sums = many.map(() => 0);
      for (let round = 0; round < rounds; round++) {
        const taken = allot(50, many, false, random);
        expect(taken.filter((count) => count > 0).length).toBeLessThanOrEqual(4);
        taken.forEach((count, index) => (sums[index]! += count));
      }
      const slots = sums.reduce((a, b) => a + b, 0);
      expect(slots).toBe(50 * rounds);
      const shares = sums.map((sum, index) => (sum / slots / many[index]!.priority) * SUM);
      for (const share of shares) expect(Math.abs(share - 1)).toBeLessThan(0.25);
      const byPriority = [1, 2, 3, 4].map((priority) =>
        sums.filter((_, index) => many[index]!.priority === priority).reduce((a, b) => a + b, 0),
      );
      byPriority.forEach((sum, index) => expect(Math.abs(sum / slots - (25 * (index + 1)) / SUM)).toBeLessThan(0.005));
    });

    it('draws on where a backlog is smaller, and leaves no slot free', () => {
      const random = generator(19);
      const short = many.map((share, index) => ({ ...share, backlog: index % 3 }));
      const taken = allot(50, short, false, random);
      expect(taken.reduce((a, b) => a + b, 0)).toBe(50);
      taken.forEach((count, index) => expect(count).toBeLessThanOrEqual(short[index]!.backlog));
    });

    it('keeps to the highest priority when strict', () => {
      const taken = allot(50, many, true, generator(23));
      expect(taken.reduce((a, b) => a + b, 0)).toBe(50);
      taken.forEach((count, index) => many[index]!.priority < 4 && expect(count).toBe(0));
    });
  });
});
