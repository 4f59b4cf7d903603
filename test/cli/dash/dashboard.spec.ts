import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Dashboard } from '../../../lib/cli/dash/dashboard.js';
import type { ActionRequest, ActionResult } from '../../../lib/cli/dash/actions.js';
import type { Reply, Query } from '../../../lib/cli/dash/query.js';
import { ManualClock } from '../../../lib/clock.js';
import { BrokerUnavailableError } from '../../../lib/errors.js';
import type { QueueInfo } from '../../../lib/inspector/views.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const NUMBERS: QueueInfo = {
  queue: '',
  size: 0,
  pending: 0,
  active: 0,
  scheduled: 0,
  retry: 0,
  archived: 0,
  completed: 0,
  aggregating: 0,
  held: 0,
  oldestHeld: 0,
  waiting: 0,
  groups: 0,
  processed: 0,
  failed: 0,
  processedTotal: 0,
  failedTotal: 0,
  paused: false,
  latency: 0,
  memoryUsage: 0,
  timestamp: new Date(0),
};

/** A backend that replies when the test says so. */
class SlowBackend {
  readonly queries: Query[] = [];
  readonly requests: ActionRequest[] = [];
  private readonly waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = [];

  read(query: Query): Promise<Reply> {
    this.queries.push(query);
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }

  act(request: ActionRequest): Promise<ActionResult> {
    this.requests.push(request);
    return Promise.resolve({ text: 'It is done.', good: true, actedOn: [] });
  }

  /** @param infos only the fields that matter */
  async answer(names: string[], infos: Partial<QueueInfo>[] = []): Promise<void> {
    this.waiting.shift()!.resolve({ kind: 'queues', names, infos: infos.map((info) => ({ ...NUMBERS, ...info })) });
    await new Promise(setImmediate);
  }

  async fail(error: Error): Promise<void> {
    this.waiting.shift()!.reject(error);
    await new Promise(setImmediate);
  }
}

describe('the dashboard', () => {
  let clock: ManualClock;
  let terminal: FakeTerminal;
  let backend: SlowBackend;
  let ended: Promise<unknown>;

  beforeEach(() => {
    clock = new ManualClock(1_700_000_000_000);
    terminal = new FakeTerminal(clock);
    backend = new SlowBackend();
    ended = new Dashboard({ terminal, backend, refresh: 8_000, where: 'here' }).run().catch((error: unknown) => error);
  });
  afterEach(async () => {
    terminal.stdin.write('\u0003');
    await ended;
  });

  const written = (): string => stripVTControlCharacters(terminal.written.splice(0).join('\n'));

  it('reads at once, and again some time after the reply', async () => {
    expect(backend.queries).toHaveLength(1);
    await backend.answer(['a']);
    expect(written()).toMatch(/> a /);
    clock.advance(7_999);
    expect(backend.queries).toHaveLength(1);
    clock.advance(1);
    expect(backend.queries).toHaveLength(2);
  });

  it('runs one query at a time, however slow the reply and whatever is pressed', async () => {
    terminal.stdin.write('rrr');
    clock.advance(60_000);
    expect(backend.queries).toHaveLength(1);
    await backend.answer(['a', 'b']);
    expect(backend.queries).toHaveLength(2); // r
    await backend.answer(['a', 'b']);
    expect(backend.queries).toHaveLength(2);
    terminal.stdin.write('\r');
    expect(backend.queries.at(-1)).toMatchObject({ target: { kind: 'queue', queue: 'a' } });
    terminal.stdin.write('h');
    expect(backend.queries).toHaveLength(3);
    await backend.answer([]); // for a queue nobody looks at any more
    expect(backend.queries.slice(3)).toMatchObject([{ target: { kind: 'queues' } }]);
    await backend.answer(['a', 'b']);
    expect(backend.queries).toHaveLength(4);
  });

  it('draws nothing before the data arrive or a short time passes', async () => {
    expect(written()).not.toContain('reading');
    clock.advance(79);
    expect(written()).not.toContain('reading');
    clock.advance(1);
    expect(written()).toContain('reading …');
  });

  it('updates the age of the data every second, and writes nothing else', async () => {
    await backend.answer(['a']);
    written();
    clock.advance(1_000);
    const [first, ...others] = written().split('\n');
    expect(first).toMatch(/here · 1s ago/);
    expect(others).toEqual([]);
  });

  it('shows the failure beside the last data, and tries again later', async () => {
    await backend.answer(['a']);
    clock.advance(8_000);
    await backend.fail(new BrokerUnavailableError('Redis is unavailable'));
    expect(written()).toContain('! Redis is unavailable');
    clock.advance(7_000);
    expect(backend.queries).toHaveLength(2);
    expect(written()).toMatch(/as of 15s ago/);
    clock.advance(1_000);
    expect(backend.queries).toHaveLength(3);
    await backend.answer(['a', 'b']);
    expect(written()).toMatch(/now[^]* {2}b /);
  });

  it('reads again after an action', async () => {
    await backend.answer(['a'], [{ queue: 'a', paused: false }]);
    written();
    terminal.stdin.write('P');
    expect(backend.requests).toEqual([{ action: 'pause', queue: 'a' }]);
    expect(written()).toContain('working …');
    await new Promise(setImmediate);
    expect(written()).toContain('It is done.');
    expect(backend.queries).toHaveLength(2);
  });

  it('adapts to a new screen size', async () => {
    await backend.answer(['a']);
    written();
    terminal.resize(40, 10);
    expect(written()).toContain('> a ');
    expect(backend.queries.at(-1)).toMatchObject({ height: 6 });
  });

  it.each([
    ['q', 'quit'],
    ['\u0003', 'interrupt'],
  ])('ends at %j, also during a query, and leaves no timer', async (key, how) => {
    terminal.stdin.write(key);
    expect(await ended).toBe(how);
    expect(terminal.rawModes).toEqual([true, false]);
    expect(clock.nextDue()).toBeUndefined();
    await backend.answer(['a']);
    expect(clock.nextDue()).toBeUndefined();
  });

  it('ends and restores the terminal after a bug of its own', async () => {
    const broken = { kind: 'queues', names: undefined, infos: [] } as never;
    vi.spyOn(backend, 'read').mockResolvedValue(broken);
    await backend.answer(undefined as never);
    expect(await ended).toBeInstanceOf(TypeError);
    expect(terminal.rawModes).toEqual([true, false]);
  });
});
