import { afterEach, describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { SEATS } from '../../../lib/broker/seats.js';
import { prepared, type PreparedTask } from '../../../lib/enqueue/prepared-task.js';
import { Server } from '../../../lib/server/server.js';
import { failingBroker } from '../../support/failing-broker.js';
import { request } from '../../support/messages.js';
import { manualClock, turn } from '../../support/server-rig.js';

const clock = manualClock();

interface Member {
  readonly server: Server;
  readonly calls: readonly string[];
  /** Ends of the aggregations that are under way. */
  readonly ends: (() => void)[];
}

let memory: MemoryBroker;
let crew: Member[] = [];

const pass = async (milliseconds: number): Promise<void> => {
  for (let left = milliseconds; left > 0; left -= 500) {
    clock.advance(Math.min(500, left));
    await turn(3);
  }
};

/** Servers of one crew that have their seats. */
async function startCrew(size: number): Promise<Member[]> {
  memory = new MemoryBroker(clock);
  crew = [];
  for (let index = 0; index < size; index++) {
    const { broker, calls } = failingBroker(memory);
    const ends: (() => void)[] = [];
    const aggregate = (queue: string): Promise<PreparedTask> =>
      new Promise((resolve) => ends.push(() => resolve(prepared(request({ type: 'whole', queue }), 0))));
    const read = ({ id, type, payload }: { id: string; type: string; payload: Uint8Array }) => ({
      id,
      type,
      payload,
      headers: {},
    });
    const aggregators = [{ pattern: '', read, aggregate }];
    const server = new Server({ broker, handlers: [], aggregators, options: { groupGracePeriod: '1s' } });
    crew.push({ server, calls, ends });
    await server.start();
    await turn();
  }
  await pass(5_000);
  return crew;
}

const add = (groups: number): Promise<unknown> =>
  memory.producer.enqueue(
    'default',
    Array.from({ length: groups }, (_, n) => request({ groupKey: `g${n}` })),
  );
const count = (member: Member, call: string): number => member.calls.filter((name) => name === call).length;
const begun = (): number[] => crew.map(({ ends }) => ends.length);
const sum = (counts: readonly number[]): number => counts.reduce((total, one) => total + one, 0);

async function close(members: readonly Member[]): Promise<void> {
  let closed = false;
  const closing = Promise.all(members.map(({ server }) => server.shutdown())).then(() => (closed = true));
  while (!closed) {
    for (const { ends } of members) for (const end of ends.splice(0)) end();
    clock.advance(500);
    await turn(2);
  }
  await closing;
}

afterEach(() => close(crew));

describe('servers that aggregate the same groups', () => {
  it('leave it to two of them to look, however many there are', async () => {
    const members = await startCrew(SEATS + 2);
    const before = members.map((member) => count(member, 'claimDueSets'));
    await pass(20_000);
    const looks = members.map((member, index) => count(member, 'claimDueSets') - before[index]!);
    expect(looks.slice(0, 2).every((one) => one >= 20)).toBe(true);
    expect(looks.slice(2).every((one) => one === 0)).toBe(true);
    await add(3);
    await pass(2_000);
    expect(sum(begun().slice(0, 2))).toBe(3);
    expect(sum(begun())).toBe(3);
  });

  it('help while those two have all they work on at once', async () => {
    await startCrew(SEATS + 2);
    await add(100);
    await pass(7_000);
    expect(begun()).toEqual([...Array.from({ length: SEATS }, () => 10), 0, 0]);
    // A helper takes the next as soon as it has room, while there is more than one server works on.
    crew[3]!.ends.shift()!();
    await turn();
    await pass(1);
    expect(begun()[3]).toBe(10);
  });

  it('take over at once when those two are gone', async () => {
    const [first, second, ...others] = await startCrew(4);
    await close([first!, second!]);
    crew = others;
    await memory.producer.enqueue('default', [request({ groupKey: 'late' })]);
    await pass(5_000);
    expect(sum(begun())).toBe(1);
    expect(await memory.inspection.groups('default')).toEqual([]);
  });
});
