import type { CrewKeys, Keyspace } from '../../wire/keys.js';
import {
  CALL_WINDOW_MS,
  CREW_PARTS,
  isCalled,
  MAINTAINERS,
  SEAT_MS,
  SEATS,
  type SeatReply,
  type SeatsRole,
  type StandbyCall,
} from '../seats.js';
import type { RedisConnections } from './connection/connections.js';
import { subscribe } from './connection/subscription.js';
import type { Scripts } from './scripts/scripts.js';

/** Standbys come for a seat several times in this time. */
const CROWDED_MS = 10_000;

/** The seats of crews, over the connection `monitor`. All keys of a crew are in one slot. */
export class RedisSeats implements SeatsRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
  ) {}

  take(crew: string, server: string, part: number): Promise<SeatReply> {
    return this.run(crew, server, part, '1');
  }

  leave(crew: string, server: string, part: number): Promise<SeatReply> {
    return this.run(crew, server, part, '0');
  }

  async call(crew: string, start: number): Promise<number> {
    const { called, partChannels } = this.keyspace.crew(crew);
    const argv = [String(start), String(CREW_PARTS), String(CALL_WINDOW_MS), partChannels];
    return (await this.scripts.run('monitor', 'callStandbys', [called], argv)) as number;
  }

  listen(crew: string, part: number, listener: (call: StandbyCall) => void): Promise<() => Promise<void>> {
    const { freeChannel, partChannels } = this.keyspace.crew(crew);
    return subscribe(this.connections, [freeChannel, partChannels + part], (message) => {
      if (message === 'seat' || message === 'work') listener(message);
    });
  }

  private async run(crew: string, server: string, part: number, sits: '0' | '1'): Promise<SeatReply> {
    const keys = this.keyspace.crew(crew);
    const argv = [server, sits, String(SEAT_MS), String(MAINTAINERS), String(CROWDED_MS), keys.freeChannel];
    const reply = await this.scripts.run('monitor', 'takeSeat', keysOf(keys), argv);
    const [seat, maintained, crowded, called] = reply as [number, number, number, Buffer];
    const [start = 0, count = 0] = called.toString().split(' ').map(Number);
    return { seat, maintained: maintained === 1, crowded: crowded === 1, called: isCalled(part, start, count) };
  }
}

const keysOf = ({ called, crowded, seats }: CrewKeys): string[] => [
  called,
  crowded,
  ...Array.from({ length: SEATS }, (_, index) => seats + (index + 1)),
];
