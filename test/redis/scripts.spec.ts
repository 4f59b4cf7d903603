import { readdirSync } from 'node:fs';
import { describe, expect, vi } from 'vitest';
import { LEASE_SECONDS, type Settlement } from '../../lib/broker/broker.js';
import type { ClaimedSet } from '../../lib/broker/groups.js';
import { type NewRun, type NewStep, taskIdOfStep } from '../../lib/broker/workflows.js';
import type { LinkedRequest } from '../../lib/broker/links.js';
import type { Cancellation } from '../../lib/broker/cancellation.js';
import type { Firing } from '../../lib/broker/scheduling.js';
import { type Chunk, type NewBatch, taskIdOfMember } from '../../lib/broker/batches.js';
import { readLua } from '../../lib/broker/redis/scripts/lua.js';
import { SCRIPTS, type ScriptName } from '../../lib/broker/redis/scripts/script-registry.js';
import { KEY_TYPES, type KeyName, type ScriptShape } from '../../lib/broker/redis/scripts/script-shape.js';
import { LINKED, scriptFile, scriptSource, textOf } from '../../lib/broker/redis/scripts/script-source.js';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import { WrongKeyTypeError } from '../../lib/errors.js';
import { utcDay } from '../../lib/wire/keys.js';
import type { ServerInfo } from '../../lib/wire/message.js';
import { leaseOf } from '../contract/driver.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { fairHeader, repeat, request } from '../support/messages.js';

const DIRECTORY = new URL('../../lua/', import.meta.url);
const NAMES = Object.keys(SCRIPTS) as ScriptName[];
const SERVER = { host: 'host', pid: 1, serverId: 'sid' };
const CREW = 'crew';
const INFO: ServerInfo = {
  ...SERVER,
  concurrency: 1,
  queues: { default: 1 },
  strictPriority: false,
  status: 'active',
  startTime: 0,
  activeWorkerCount: 0,
};

/** The KEYS or ARGV in a header, if any: the numbered names, and whether more may follow. */
function section(header: string, title: string): { names: string[]; open: boolean } {
  const body = new RegExp(`^-- ${title}\\n((?:--   .*\\n)+)`, 'm').exec(header)?.[1] ?? '';
  const rows = body === '' ? [] : body.trimEnd().split('\n');
  const open = rows.at(-1)?.startsWith(`--   ${rows.length}… `) ?? false;
  const numbered = open ? rows.slice(0, -1) : rows;
  const names = numbered.map((row, index) => new RegExp(`^--   ${index + 1} (\\w+)(?:: .+)?$`).exec(row)?.[1]);
  if (names.includes(undefined)) throw new Error(`cannot read ${title} in: ${header}`);
  return { names: names as string[], open };
}

const headerOf = (name: ScriptName): string => /^(?:--.*\n)+/.exec(readLua(scriptFile(name)))?.[0] ?? '';

/** The files of lua/shared, and the functions each is for. */
const SHARED = [
  { file: 'shared/spread.lua', defines: ['spread'] },
  { file: 'shared/stored.lua', defines: ['stored'] },
  { file: 'shared/byte-order.lua', defines: ['comes_after'] },
  { file: 'shared/delayed-groups.lua', defines: ['note_delayed_groups', 'list_delayed_groups'] },
  { file: 'shared/hold.lua', defines: ['hold'] },
  { file: 'shared/fence.lua', defines: ['missing_leases'] },
  { file: 'shared/starts.lua', defines: ['starts_left', 'count_starts'] },
  { file: 'shared/share-limits.lua', defines: ['share_limits'] },
  { file: 'shared/slots.lua', defines: ['divide_slots'] },
  { file: 'shared/end-sleep.lua', defines: ['end_sleep'] },
];

/** The file with what a script does: two scripts have one where links are a branch of it. */
const bodyOf = (name: ScriptName): string =>
  /^-- Includes (\S+)$/m.exec(readLua(scriptFile(name)))?.[1] ?? scriptFile(name);

/** For each script a broker call that runs it. */
const CALLS: Record<ScriptName, (driver: RedisDriver) => Promise<unknown>> = {
  enqueue: (driver) => driver.enqueue([request(), request({}, { processAt: 2 ** 32 }), request({ groupKey: 'g' })]),
  enqueueFair: (driver) => {
    driver.broker.fairQueues.add('default');
    return driver.enqueue([request({ headers: fairHeader('a') })]);
  },
  enqueueBounded: ({ broker }) => broker.producer.enqueueBounded('default', [request()], 1),
  enqueueRows: ({ broker }) => broker.rows.enqueue('default', 'sender', [{ number: 1, request: request() }]),
  enqueueUniqueRows: ({ broker }) =>
    broker.rows.enqueueRepeats('default', 'sender', [{ number: 1, request: repeat('latest', 'u') }]),
  enqueueUnique: ({ broker }) => broker.uniqueness.enqueue('default', [repeat('latest', 'u')]),
  enqueueUniqueLinked: async (driver) => {
    await driver.broker.uniqueness.enqueue('default', [repeat('latest', 'v')]);
    await driver.take(9);
    return driver.broker.uniqueness.enqueue('default', [repeat('latest', 'w')]);
  },
  releaseLock: (driver) => driver.broker.uniqueness.release('default', driver.keys.unique('t', undefined), 'a'),
  findSuperseded: (driver) => driver.broker.uniqueness.findSuperseded('default', ['a']),
  describeLocks: (driver) => driver.broker.uniqueness.describe('default', [driver.keys.unique('t', undefined)]),
  exchange: (driver) =>
    driver.broker.consumer.exchange('default', {
      settle: [archival(driver, 'a'), retrial(driver, 'b')],
      take: 1,
      limits: { active: 5, rate: 5, window: 60_000 },
    }),
  exchangeLinked: (driver) => CALLS.exchange(driver),
  exchangeFair: (driver) => {
    driver.broker.fairQueues.add('default');
    return CALLS.exchange(driver);
  },
  exchangeFairLinked: (driver) => CALLS.exchangeFair(driver),
  extendLeases: (driver) =>
    driver.broker.consumer.extendLeases('default', [leaseOf('a', 1)], driver.now + LEASE_SECONDS),
  writeFields: (driver) => driver.broker.consumer.writeResult(leaseOf('a', driver.now), Buffer.from('r')),
  writeNotes: (driver) =>
    driver.broker.notes.write(leaseOf('a', driver.now), { progress: '[]', fresh: true, pieces: [] }),
  signal: ({ broker }) => broker.checkpoints.signal('default', 'a', 'approval', Buffer.from('1')),
  forward: ({ broker }) => broker.maintenance.forward('default'),
  fillTurns: ({ broker }) => broker.maintenance.fillTurns('default', 5),
  repairLines: ({ broker }) => broker.maintenance.repairLines('default'),
  repairTotal: ({ broker }) => broker.maintenance.repairLines('default'),
  listExpiredLeases: (driver) => driver.broker.maintenance.listExpiredLeases('default', driver.now, 10),
  repairActive: ({ broker }) => broker.maintenance.repairActive('default'),
  deleteExpiredCompleted: ({ broker }) => broker.maintenance.deleteExpiredCompleted('default', 10),
  trimArchived: ({ broker }) => broker.maintenance.trimArchived('default', 10),
  deleteLateResults: ({ broker }) => broker.maintenance.deleteLateResults('default'),
  claimDueSets: ({ broker }) => broker.groups.claimDueSets('default', () => AT_ONCE, 10),
  readSet: (driver) => driver.broker.groups.readSet(claimedSet(driver)),
  archiveDamagedMembers: (driver) => driver.broker.groups.archiveDamagedMembers(claimedSet(driver), ['g']),
  finishSet: (driver) => driver.broker.groups.finishSet({ ...claimedSet(driver), tasks: [], damaged: [] }, request()),
  finishSetLinked: (driver) =>
    driver.broker.groups.finishSet({ ...claimedSet(driver), tasks: [], damaged: [] }, linked('l')),
  reclaimStaleSets: ({ broker }) => broker.groups.reclaimStaleSets('default'),
  repairGroups: ({ broker }) => broker.groups.repairGroups('default'),
  listDelayedGroups: ({ broker }) => broker.groups.listDelayedGroups('default'),
  writeServerState: ({ broker }) => broker.monitoring.writeServerState(INFO, [], 10),
  recordCancellation: (driver) => driver.broker.cancellation.recordCancellation(cancellation(driver)),
  takeSeat: ({ broker }) => broker.seats.take(CREW, 'server', 0),
  callStandbys: ({ broker }) => broker.seats.call(CREW, 0),
  appendEvents: ({ broker }) => broker.events.appendEvents('events', [Buffer.from('e')], { most: 100 }),
  findCancellations: async (driver) => {
    await driver.broker.cancellation.recordCancellation(cancellation(driver));
    return driver.broker.cancellation.findCancellations(['a']);
  },
  noteCancelled: (driver) => driver.broker.cancellation.noteCancelled([{ ...cancellation(driver), queue: 'default' }]),
  moveTokens: (driver) => driver.broker.limiting.moveTokens('scope', driver.now + 60, [{ from: 'a', to: 'b' }]),
  acquireTokens: (driver) => driver.broker.limiting.acquireTokens('scope', 3, driver.now + 60, ['a']),
  takeStarts: ({ broker }) => broker.limiting.takeStarts('scope', { max: 3, window: 60_000 }, 1),
  takeCosts: ({ broker }) => broker.limiting.takeCosts('scope', { max: 3, window: 60_000 }, [1, 3]),
  correctCosts: ({ broker }) => broker.limiting.correctCosts('scope', 60_000, [{ countedAt: 7, by: 2 }]),
  wakeWaiting: ({ broker }) => broker.limiting.wakeWaiting('default', 'waitlist', 1),
  openSchedule: ({ broker }) => broker.scheduling.openSchedule('default', 'entry', 'spec', 60),
  pauseSchedule: ({ broker }) => broker.scheduling.pauseSchedule('default', 'entry'),
  resumeSchedule: ({ broker }) => broker.scheduling.resumeSchedule('default', 'entry'),
  fire: (driver) => driver.broker.scheduling.fire('default', firing(driver)),
  fireLinked: (driver) => {
    const unique = { ...firing(driver).request, wait: linked('a').wait };
    return driver.broker.scheduling.fire('default', { ...firing(driver), request: unique });
  },
  writeSchedulerEntries: ({ broker }) => broker.scheduling.writeSchedulerEntries('h:1:sid', [], 20),
  recordEnqueueEvent: (driver) =>
    driver.broker.scheduling.recordEnqueueEvent('entry', { taskId: 'a', enqueueTime: driver.clock.now() }),
  readPosition: ({ broker }) => broker.obstacles.position('default', 'a'),
  startsLeft: ({ broker }) => broker.obstacles.startsLeft('scope', { max: 3, window: 60_000 }),
  observeServer: async ({ broker }) => {
    await broker.monitoring.writeServerState(INFO, [], 10);
    return broker.obstacles.observeServers();
  },
  readSteps: ({ broker }) => broker.checkpoints.view('default', 'a', [{ step: 'x' }], 0),
  getTask: ({ broker }) => broker.inspection.getTask('default', 'a'),
  describeQueue: ({ broker }) => broker.inspection.describeQueue('default'),
  groups: ({ broker }) => broker.inspection.groups('default'),
  listSorted: ({ broker }) => broker.listing.listTasks('default', { state: 'scheduled', size: 10 }),
  moveTasks: ({ broker }) => broker.administration.moveTasks('default', 'run', ['c', 'g']),
  updatePayload: ({ broker }) => broker.administration.updatePayload('default', 'a', Buffer.from('new')),
  beginDeletion: ({ broker }) => broker.administration.deleteQueue('default', { force: true }),
  deleteSome: ({ broker }) => broker.administration.deleteQueue('default', { force: true }),
  sweepQueue: ({ broker }) => broker.administration.deleteQueue('default', { force: true }),
  enqueueLinked: ({ broker }) => broker.rows.enqueueLinked('default', 'sender', [{ number: 1, request: linked('l') }]),
  deliver: ({ broker }) => broker.links.deliver('default', [PARCEL]),
  watch: ({ broker }) =>
    broker.links.watch('default', [{ id: 'c', waiting: { queue: 'other', id: 'x', n: 0, until: 1 } }]),
  check: ({ broker }) => broker.links.check('default', ['a']),
  keep: ({ broker }) => broker.links.keep('default', 5),
  leasePlace: ({ broker }) => broker.links.lease('default', 'owner', 1_000),
  readWait: ({ broker }) => broker.links.waitOf('default', 'a'),
  acknowledge: ({ broker }) => broker.links.acknowledge('default', [PARCEL]),
  postpone: ({ broker }) => broker.links.postpone('default', [PARCEL]),
  startRuns: ({ broker }) => broker.workflows.start('default', [workflowRun()]),
  growRun: ({ broker }) => broker.workflows.grow('default', 'wf:1', [workflowStep('b')]),
  cancelRun: ({ broker }) => broker.workflows.cancel('default', 'wf:1', 'why'),
  retryRun: ({ broker }) => broker.workflows.retry('default', 'wf:1'),
  deleteRun: ({ broker }) => broker.workflows.delete('default', 'wf:1'),
  describeRun: ({ broker }) => broker.workflows.run('default', 'wf:1'),
  listRuns: ({ broker }) => broker.workflows.runs('default', { offset: 0, size: 10 }),
  callTasks: ({ broker }) => broker.checkpoints.call(leaseOf('a', 1), [STEP_CALL]),
  openBatch: ({ broker }) => broker.batches.open('default', BATCH),
  reserveMembers: ({ broker }) => broker.batches.reserve('default', BATCH.id, [{ queue: 'default', count: 1 }]),
  addMembers: (driver) => {
    const message = { id: taskIdOfMember(BATCH.id, 0), uniqueKey: driver.keys.unique('m', undefined) };
    return driver.broker.batches.add(CHUNK, [request(message, { uniqueTtl: 1 })]);
  },
  confirmMembers: ({ broker }) => broker.batches.confirm('default', BATCH.id, [{ base: 0, created: 0 }]),
  closeBatch: ({ broker }) => broker.batches.close('default', BATCH.id),
  deleteBatch: ({ broker }) => broker.batches.delete('default', BATCH.id),
  readBatch: ({ broker }) => broker.batches.progress('default', BATCH.id),
  listLines: ({ broker }) => broker.listing.listTasks('default', { state: 'pending', size: 10 }),
  listKeys: ({ broker }) => broker.fairKeys.sizes('default', false, true),
  describeKeys: ({ broker }) => broker.fairKeys.describe('default', ['a']),
  listUnsorted: ({ broker }) => broker.listing.listTasks('default', { state: 'active', size: 10 }),
};

const STEP_CALL = { step: 'a', checkpoint: Buffer.from('{}\n'), answer: 'a', queue: 'default', id: 'a~a' };

const PARCEL = {
  from: 'other',
  to: 'default',
  key: 'default edge l 0',
  body: JSON.stringify({ kind: 'edge', id: 'l', n: 0, d: 1, of: ['other', 'x'], ok: true }),
  data: Buffer.alloc(0),
};

const BATCH: NewBatch = {
  id: 'batch-1',
  name: 'test',
  callbacks: { success: request({ id: 'success' }) },
  closeBy: 2 ** 32,
  retention: 60,
};

const CHUNK: Chunk = { batch: BATCH.id, home: 'default', queue: 'default', base: 0, count: 1 };

const linked = (id: string): LinkedRequest => ({
  ...request({ id }),
  wait: { prerequisites: [{ type: 't', key: 'k' }], onFailure: 'cancel', onTimeout: 'archive', deadline: 2 ** 32 },
});

const workflowStep = (name: string): NewStep => ({
  name,
  request: request({ id: taskIdOfStep('wf:1', name) }),
  after: [],
  onFailure: 'cancel',
  optional: false,
  delay: 0,
});

const workflowRun = (): NewRun => ({
  id: 'wf:1',
  name: 'wf',
  steps: [workflowStep('a')],
  retention: 60,
  deadline: undefined,
});

const cancellation = (driver: RedisDriver): Cancellation => ({ id: 'a', at: driver.clock.now(), outcome: 'retry' });

const AT_ONCE = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
const claimedSet = (driver: RedisDriver): ClaimedSet => ({
  queue: 'default',
  group: 'old',
  key: driver.keys.aggregationSet('old', 'set'),
  deadline: driver.now,
});

let fired = 0;
/** Another one each time: a planned time is handled once. */
const firing = (driver: RedisDriver): Firing => ({
  entry: 'entry',
  scheduledFor: driver.now + ++fired,
  attempt: String(fired),
  request: request({ id: 'a', uniqueKey: driver.keys.unique('t', undefined) }, { uniqueTtl: 1 }),
  skipUnfinished: true,
  keepFor: 60,
});

const archival = (driver: RedisDriver, id: string): Settlement => ({
  kind: 'archive',
  lease: leaseOf(id, driver.now),
  message: undefined,
});
const retrial = (driver: RedisDriver, id: string): Settlement => ({
  kind: 'retry',
  lease: leaseOf(id, driver.now),
  message: request({ id }).message,
  retryAt: driver.now,
  countAsFailure: true,
});

/**
 * Active tasks `a` and `b`, a task in a group and one in a stale claimed set, so that every call
 * has work.
 */
async function arrange(driver: RedisDriver, script?: ScriptName): Promise<void> {
  const { keys, keyspace, redis, now } = driver;
  await redis.sadd(keyspace.linked, 'default', 'other');
  await driver.broker.batches.open('default', BATCH);
  await driver.enqueue([request({ id: 'a' }), request({ id: 'b' }), request({ id: 'c' })]);
  await driver.take(2);
  await redis.zadd(keys.lease, now, 'a', now, 'b');
  await driver.enqueue([request({ id: 'g', groupKey: 'group' }), request({ id: 'o', groupKey: 'old' })]);
  if (script === 'exchangeLinked' || script === 'exchangeFairLinked') await driver.redis.hset(keys.links, 'a', '[]');
  const { key, deadline } = claimedSet(driver);
  await redis.rename(keys.group('old'), key);
  await redis.zadd(keys.aggregationSets, deadline, key);
  await redis.srem(keys.groups, 'old');
  await redis.zadd(`${keys.fairLinePrefix}a`, 1, 'l');
  // A queue with active tasks is not deleted.
  if (script === 'deleteSome' || script === 'sweepQueue') await redis.del(keys.active, keys.lease);
}

/** The values of KEYS by their names in the registry. */
function expectedKey(driver: RedisDriver, name: KeyName): string {
  const { keys, keyspace, clock } = driver;
  const day = utcDay(clock.now());
  switch (name) {
    case 'processedOn':
      return keys.processedOn(day);
    case 'failedOn':
      return keys.failedOn(day);
    case 'task':
      return keys.task('a');
    case 'aggregationSet':
      return claimedSet(driver).key;
    case 'run':
      return keys.run('wf:1');
    case 'batch':
    case 'part':
    case 'partMade':
      return keys[name](BATCH.id);
    case 'schedule':
      return keys.schedule('entry');
    case 'schedulerEntries':
      return keyspace.scheduler('h:1:sid');
    case 'schedulerHistory':
      return keyspace.schedulerHistory('entry');
    case 'server':
      return keyspace.server(SERVER.host, SERVER.pid, SERVER.serverId);
    case 'rate':
      return keys.rate(60_000);
    case 'eventStream':
    case 'cancellations':
    case 'cancellationDetails':
      return keyspace[name];
    case 'starts':
      return keyspace.starts('scope', 60_000);
    case 'waiting':
      return keys.waiting('waitlist');
    case 'semaphore':
      return keyspace.semaphore('scope');
    case 'workers':
      return keyspace.serverWorkers(SERVER.host, SERVER.pid, SERVER.serverId);
    case 'profile':
      return keyspace.serverProfile(SERVER.host, SERVER.pid, SERVER.serverId);
    case 'crewCalled':
      return keyspace.crew(CREW).called;
    case 'crewCrowded':
      return keyspace.crew(CREW).crowded;
    case 'lock':
      return keys.unique('t', undefined);
    case 'list':
      return keys.active;
    case 'sorted':
      return keys.scheduled;
    default:
      return keys[name];
  }
}

/** The values of ARGV that are the same in every script. */
const expectedArgument = (driver: RedisDriver, name: string): unknown =>
  ({
    taskPrefix: driver.keys.taskPrefix,
    groupPrefix: driver.keys.groupPrefix,
    now: String(driver.now),
    nowNanos: `${driver.now}000000000`,
    expiry: String(driver.now + 30),
    setDeadline: expect.toSatisfy((text) => [0, 120].includes(Number(text) - driver.now)),
    leaseExpiry: String(driver.now + 30),
    statsExpiry: String(driver.now + 90 * 86_400),
    max: '9223372036854775807',
    id: 'a',
    keep: '9999',
    resent: '0',
  })[name] ?? expect.anything();

describe('lua/', () => {
  it('contains the scripts of the registry and no others', () => {
    const files = readdirSync(DIRECTORY, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
    const scripts = files.map((file) => file.replaceAll('\\', '/')).filter((file) => !file.startsWith('shared/'));
    expect(scripts.sort()).toEqual([...new Set(NAMES.map(scriptFile))].sort());
  });

  it.each(NAMES)('%s: header and registry name the same KEYS and ARGV', (name) => {
    const header = headerOf(name);
    expect(header).toMatch(/^-- .+: \w+Role\.\w+/);
    expect(header).toMatch(/^-- Returns\n--   \S/m);
    expect(section(header, 'KEYS').names).toEqual(SCRIPTS[name].keys);
    expect(section(header, 'ARGV').names).toEqual(SCRIPTS[name].argv);
  });

  it.each(NAMES)('%s: uses the shared files it names, and no others', (name) => {
    const own = readLua(bodyOf(name));
    const named = [...own.matchAll(/^-- Uses (\S+)$/gm)].map(([, file]) => file);
    const used = SHARED.filter(({ defines }) => defines.some((helper) => own.includes(`${helper}(`)));
    expect(named).toEqual(used.map(({ file }) => file));
    for (const { file } of used) expect(scriptSource(name).text).toContain(textOf(file));
  });

  it.each(NAMES.filter((name) => scriptSource(name).part))(
    '%s is the branch of that name in the text of all with links',
    (name) => {
      expect(readLua(LINKED)).toContain(`if script == '${name}' then\n  -- Includes ${bodyOf(name)}\n`);
    },
  );

  it.for(NAMES)('%s: is called with the KEYS and ARGV its header names', async (name, { driver }) => {
    await arrange(driver, name);
    const run = vi.spyOn(Scripts.prototype, 'run');
    await CALLS[name](driver);
    const calls = run.mock.calls.filter(([, called]) => called === name);
    run.mockRestore();
    expect(calls).not.toEqual([]);
    const { keys, argv }: ScriptShape = SCRIPTS[name];
    const header = headerOf(name);
    for (const [, , sentKeys, sentArgv] of calls) {
      expect(sentKeys.slice(0, keys.length)).toEqual(keys.map((key) => expectedKey(driver, key)));
      expect(sentArgv.slice(0, argv.length)).toEqual(argv.map((one) => expectedArgument(driver, one)));
      expect(sentKeys.length > keys.length).toBe(section(header, 'KEYS').open);
      if (sentArgv.length > argv.length) expect(section(header, 'ARGV').open).toBe(true);
    }
  });
});

describe('the loader', () => {
  it.for(NAMES)('%s runs on a Redis that does not know it', async (name, { driver }) => {
    await arrange(driver, name);
    await driver.redis.script('FLUSH');
    await expect(CALLS[name](driver)).resolves.not.toThrow();
    const { sha1 } = scriptSource(name);
    expect(await driver.redis.script('EXISTS', sha1)).toEqual([1]);
  });

  it('sends a script that Redis knows only by its hash', async ({ driver }) => {
    await CALLS.forward(driver);
    await driver.redis.config('RESETSTAT');
    await CALLS.forward(driver);
    const stats = await driver.redis.info('commandstats');
    expect(stats).toContain('cmdstat_evalsha:calls=1');
    expect(stats).not.toContain('cmdstat_eval:');
  });

  it('loses nothing when Redis forgets its scripts while calls are under way', async ({ driver }) => {
    await driver.broker.monitoring.ping();
    const batches = Array.from({ length: 20 }, () => [request(), request()]);
    const created = Promise.all(batches.map((batch) => driver.enqueue(batch)));
    await driver.redis.script('FLUSH');
    expect((await created).flat()).toEqual(Array(40).fill('enqueued'));
    await driver.redis.script('FLUSH');
    expect(await driver.take(40)).toHaveLength(40);
  });
});

describe('a key of the wrong type', () => {
  /**
   * Keys whose type does not matter: these calls overwrite them, only check that they exist, or do
   * not use them.
   */
  const UNREAD: Partial<Record<ScriptName, KeyName[]>> = {
    exchange: ['paused'],
    exchangeLinked: ['paused'],
    exchangeFair: ['paused'],
    exchangeFairLinked: ['paused'],
    fillTurns: ['paused'],
    wakeWaiting: ['paused'],
    writeServerState: ['server', 'workers'],
    takeSeat: ['crewCalled', 'crewCrowded'],
    writeSchedulerEntries: ['schedulerEntries'],
    getTask: ['scheduled', 'retry', 'waitingTasks'],
    describeQueue: ['paused'],
    readPosition: ['task', 'paused'],
    observeServer: ['server', 'workers', 'profile'],
    beginDeletion: ['paused'],
  };
  const cases = NAMES.flatMap((name) =>
    (SCRIPTS[name].keys as readonly KeyName[])
      .filter((key) => !(UNREAD[name] ?? []).includes(key))
      .map((key) => [name, key] as const),
  );

  it.for(cases)('%s: fails before it writes, and names %s', async ([name, key], { driver }) => {
    await arrange(driver, name);
    const wrong = expectedKey(driver, key);
    await driver.redis.del(wrong);
    if (KEY_TYPES[key] === 'string') await driver.redis.rpush(wrong, 'x');
    else await driver.redis.set(wrong, 'x');
    const before = await driver.contents();
    const failure = await CALLS[name](driver).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(WrongKeyTypeError);
    expect((failure as Error).message).toContain(`"${wrong}" is a`);
    expect(await driver.contents()).toEqual(before);
  });

  it('includes a counter that is no number', async ({ driver }) => {
    await arrange(driver);
    await driver.redis.set(driver.keys.processed, 'many');
    const before = await driver.contents();
    await expect(CALLS.exchange(driver)).rejects.toThrow(/processed holds "many", which cannot be counted on from/);
    expect(await driver.contents()).toEqual(before);
  });
});
