import { beforeEach, describe, expect, it } from 'vitest';
import type { Caused, Delivered, Parcel } from '../../../lib/broker/links.js';
import { BrokerUnavailableError, ClosedError, UndecodableMessageError } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { Relay } from '../../../lib/links/relay.js';

const parcel = (from: string, to: string, key: string, bytes = 0): Parcel => ({
  from,
  to,
  key,
  body: '{}',
  data: Buffer.alloc(bytes),
});

const UNKNOWN = new UndecodableMessageError('a kind of the future');

/** Places whose calls the test answers one by one. */
class Places {
  readonly calls: { readonly name: string; readonly place: string; readonly keys: string[] }[] = [];
  private readonly held = new Map<string, (() => void)[]>();
  readonly failing = new Map<string, unknown>();
  readonly causes = new Map<string, Parcel[]>();
  readonly holding = new Set<string>();
  damage: Pick<Caused, 'damage'> = {};
  readonly unknown = new Set<string>();

  async deliver(place: string, parcels: readonly Parcel[]): Promise<Delivered> {
    await this.called('deliver', place, parcels);
    const done = { parcels: parcels.flatMap(({ key }) => this.causes.get(key) ?? []), ...this.damage };
    const unknown = parcels.filter(({ key }) => this.unknown.has(key));
    return unknown.length === 0 ? done : { ...done, unknown: { parcels: unknown, error: UNKNOWN } };
  }

  postpone(place: string, parcels: readonly Parcel[]): Promise<void> {
    return this.called('postpone', place, parcels);
  }

  acknowledge(place: string, parcels: readonly Parcel[]): Promise<void> {
    return this.called('acknowledge', place, parcels);
  }

  hold(place: string): void {
    this.holding.add(place);
  }

  letGo(place: string): void {
    this.holding.delete(place);
    for (const go of this.held.get(place) ?? []) go();
    this.held.delete(place);
  }

  of(name: string): (readonly [string, string])[] {
    return this.calls.filter((call) => call.name === name).map(({ place, keys }) => [place, keys.join(' ')] as const);
  }

  private async called(name: string, place: string, parcels: readonly Parcel[]): Promise<void> {
    this.calls.push({ name, place, keys: parcels.map(({ key }) => key) });
    if (this.holding.has(place)) {
      await new Promise<void>((resolve) => this.held.set(place, [...(this.held.get(place) ?? []), resolve]));
    }
    if (this.failing.has(place)) throw this.failing.get(place);
  }
}

describe('the relay', () => {
  let places: Places;
  let events: AsynqEvents;
  let failures: unknown[];
  let relay: Relay;

  beforeEach(() => {
    places = new Places();
    events = new AsynqEvents();
    failures = [];
    events.on('relayFailed', (event) => failures.push(event));
    relay = new Relay(places, events);
  });

  it('groups parcels by their destination, and acknowledges each at its origin after its delivery', async () => {
    relay.carry({
      parcels: [parcel('a', 'x', '1'), parcel('c', 'y', '2'), parcel('b', 'x', '3'), parcel('a', 'x', '4')],
    });
    await relay.idle();
    expect(places.of('deliver')).toEqual([
      ['x', '1 3 4'],
      ['y', '2'],
    ]);
    expect(places.of('acknowledge')).toEqual([
      ['a', '1 4'],
      ['b', '3'],
      ['c', '2'],
    ]);
    expect(places.calls.map(({ name }) => name)).toEqual([
      'deliver',
      'deliver',
      'acknowledge',
      'acknowledge',
      'acknowledge',
    ]);
  });

  it('begins before the call returns', () => {
    relay.carry({ parcels: [parcel('a', 'x', '1'), parcel('a', 'x', '2')] });
    expect(places.of('deliver')).toEqual([['x', '1 2']]);
  });

  it('has one delivery per place under way, and puts what comes meanwhile into the next', async () => {
    places.hold('x');
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    for (const key of ['2', '3']) relay.carry({ parcels: [parcel('a', 'x', key)] });
    relay.carry({ parcels: [parcel('a', 'y', '4')] });
    await new Promise(setImmediate);
    expect(places.of('deliver')).toEqual([
      ['x', '1'],
      ['y', '4'],
    ]);
    places.letGo('x');
    await relay.idle();
    expect(places.of('deliver')).toContainEqual(['x', '2 3']);
  });

  it('delivers only the newest of parcels with one identity that wait', async () => {
    places.hold('x');
    relay.carry({ parcels: [parcel('a', 'x', 'first')] });
    relay.carry({ parcels: [parcel('a', 'x', 'same', 1), parcel('b', 'x', 'same'), parcel('a', 'x', 'other')] });
    relay.carry({ parcels: [parcel('a', 'x', 'same', 2)] });
    places.letGo('x');
    await relay.idle();
    expect(places.of('deliver')).toContainEqual(['x', 'same other same']);
  });

  it('bounds a delivery by number and by bytes; what is larger goes alone', async () => {
    relay.carry({ parcels: Array.from({ length: 300 }, (_, index) => parcel('a', 'x', String(index))) });
    relay.carry({ parcels: ['p', 'q', 'r'].map((key) => parcel('a', 'y', key, key === 'q' ? 5 << 20 : 10)) });
    await relay.idle();
    const sizes = (place: string) =>
      places.of('deliver').flatMap(([to, keys]) => (to === place ? [keys.split(' ').length] : []));
    expect(sizes('x')).toEqual([256, 44]);
    expect(sizes('y')).toEqual([1, 1, 1]);
  });

  it('carries what deliveries cause', async () => {
    places.causes.set('1', [parcel('x', 'y', '2')]);
    places.causes.set('2', [parcel('y', 'a', '3')]);
    const carried: string[] = [];
    events.on('parcelsCarried', ({ place, parcels }) => carried.push(`${place} ${parcels}`));
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    await relay.idle();
    expect(carried).toEqual(['x 1', 'y 1', 'a 1']);
    expect(places.of('acknowledge')).toEqual([
      ['a', '1'],
      ['x', '2'],
      ['y', '3'],
    ]);
  });

  it('reports a failure, leaves what waits to the keepers, and carries what comes later', async () => {
    const error = new BrokerUnavailableError('away');
    places.failing.set('x', error);
    places.hold('x');
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    relay.carry({ parcels: [parcel('a', 'x', '2'), parcel('a', 'y', '3')] });
    places.letGo('x');
    await relay.idle();
    expect(failures).toEqual([{ place: 'x', parcels: 1, error }]);
    expect(places.of('deliver')).toEqual([
      ['x', '1'],
      ['y', '3'],
    ]);
    expect(places.of('acknowledge')).toEqual([['a', '3']]);
    places.failing.clear();
    relay.carry({ parcels: [parcel('a', 'x', '4')] });
    await relay.idle();
    expect(places.of('acknowledge')).toContainEqual(['a', '4']);
  });

  it('has those wait that are not understood, and acknowledges the others', async () => {
    places.unknown.add('2').add('3');
    const carried: unknown[] = [];
    events.on('parcelsCarried', (event) => carried.push(event));
    relay.carry({ parcels: [parcel('a', 'x', '1'), parcel('a', 'x', '2'), parcel('b', 'x', '3')] });
    await relay.idle();
    expect(failures).toEqual([{ place: 'x', parcels: 2, error: UNKNOWN }]);
    expect(carried).toEqual([{ place: 'x', parcels: 1 }]);
    expect(places.of('acknowledge')).toEqual([['a', '1']]);
    expect(places.of('postpone')).toEqual([
      ['a', '2'],
      ['b', '3'],
    ]);
  });

  it('reports what is damaged where it has delivered, and does not deliver it again', async () => {
    const damage = new UndecodableMessageError('a record is damaged');
    places.damage = { damage };
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    await relay.idle();
    expect(failures).toEqual([{ place: 'x', parcels: 1, error: damage }]);
    expect(places.of('acknowledge')).toEqual([['a', '1']]);
  });

  it('reports an acknowledgement that failed, which makes the delivery come twice', async () => {
    places.failing.set('a', new BrokerUnavailableError('away'));
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    await relay.idle();
    expect(failures).toMatchObject([{ place: 'a', parcels: 1 }]);
  });

  it('tells keepers of every call, also of one without parcels', async () => {
    let told = 0;
    const off = relay.onCarry(() => told++);
    relay.carry({ parcels: [] });
    relay.carry({ parcels: [parcel('a', 'x', '1')] });
    await relay.idle();
    expect(told).toBeGreaterThanOrEqual(2);
    off();
    const before = told;
    relay.carry({ parcels: [] });
    expect(told).toBe(before);
  });

  it('closes when nothing is under way, carries nothing afterwards, and is silent about a closed store', async () => {
    places.hold('x');
    places.failing.set('y', new ClosedError('the broker is closed'));
    relay.carry({ parcels: [parcel('a', 'x', '1'), parcel('a', 'y', '2')] });
    let closed = false;
    const closing = relay.close().then(() => (closed = true));
    await new Promise(setImmediate);
    expect(closed).toBe(false);
    places.letGo('x');
    await closing;
    relay.carry({ parcels: [parcel('a', 'x', '3')] });
    await relay.idle();
    expect(places.of('deliver')).toHaveLength(2);
    expect(failures).toEqual([]);
  });
});
