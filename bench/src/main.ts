/* Runs every system in turn, several times, on its own Redis, and prints one table of medians and ratios. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { ComposedKind } from './composition/run.js';
import type { ResultsKind } from './durable/results.js';
import type { StepsKind } from './durable/steps.js';
import type { FairnessKind } from './fairness.js';
import type { Measurement } from './measurement.js';
import { readRoundTrip, slower, startProxy } from './round-trip.js';
import { startPostgres } from './outbox/postgres.js';
import type { OutboxKind } from './outbox/run.js';
import type { ThreadsKind } from './threads.js';
import type { UniquenessKind } from './uniqueness.js';

interface Scenario {
  readonly title: string;
  readonly kind:
    | 'enqueue'
    | 'process'
    | 'slow'
    | 'latency'
    | ComposedKind
    | OutboxKind
    | UniquenessKind
    | FairnessKind
    | ThreadsKind
    | ResultsKind
    | StepsKind;
  readonly count: number;
  /** Concurrent enqueue calls, concurrent handlers, or the tasks of one flow or chain. */
  readonly atOnce: number;
  readonly systems: readonly string[];
}

/** The first scenario of each kind with few tasks: checks that the bench runs, not its speed. */
const smoke = process.argv.includes('--smoke');
/** The value after `--name=`. */
const option = (name: string): string | undefined =>
  process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3);
const only = option('only');
const asked = option('systems')?.split(',');
const rounds = smoke ? 1 : Number(option('rounds') ?? 3);
/** `--rtt=1ms`: between every system and Redis is a round trip of this length. */
const roundTrip = readRoundTrip(option('rtt'));
/** How many tasks a worker runs before the measured ones. */
const warm = Number(option('warm') ?? (smoke ? 20 : 5_000));
const n = (count: number): number => (smoke ? Math.max(20, Math.floor(count / 200)) : count);

/** `--only=composition` chooses these. @param size the tasks of one flow or chain */
const composed = (
  what: string,
  shape: 'flow' | 'chain' | 'batch',
  size: number,
  count: number,
  systems = ['ours', 'bullmq'],
): Scenario[] =>
  (['add', 'run'] as const).map((part) => ({
    title: `composition: ${part} ${what}`,
    kind: `${part}-${shape}` as const,
    count,
    atOnce: size,
    systems,
  }));

/** `--only=uniqueness` chooses these: in the steady state, see uniqueness.ts. @param keys that the calls share; 0: each has its own */
const repeated = (what: string, kind: UniquenessKind, keys: number): Scenario => ({
  title: `uniqueness: ${what}`,
  kind,
  count: n(200_000),
  atOnce: keys,
  systems: ['ours', 'bullmq'],
});

/** `--only=fairness` chooses these. All is compared with a plain queue, or with what equal shares would give. */
const turns = (what: string, kind: FairnessKind, count: number, systems: readonly string[]): Scenario => ({
  title: `fairness: ${what}`,
  kind,
  count: n(count),
  atOnce: 50,
  systems,
});
const keyed = ['fair, 10 keys', 'fair, 1,000 keys', 'fair, 100,000 keys', 'plain queue'];

/** `--only=durable` chooses these. A call is compared with an enqueue until the handler starts. */
const awaited = (what: string, kind: ResultsKind, count: number, atOnce: number): Scenario => ({
  title: `durable: ${what}`,
  kind,
  count: smoke ? Math.min(count, 20) : count,
  atOnce,
  systems: ['ours', 'bullmq'],
});

/** `--only=durable` chooses these. */
const stepped = (
  what: string,
  kind: StepsKind,
  count: number,
  atOnce: number,
  systems: readonly string[],
): Scenario => ({
  title: `durable: ${what}`,
  kind,
  count: smoke ? Math.min(count, 20) : count,
  atOnce,
  systems,
});
const durables = ['ours', 'ours, fsync always', 'dbos'];

const GO = 'go asynq';
const peers = ['bullmq', 'bee-queue', GO];
/** They store tasks in the transaction of the application. */
const inDatabases = ['ours', 'pg-boss', 'graphile-worker'];
const everybody = ['ours', ...peers];
const scenarios: Scenario[] = [
  { title: 'enqueue one by one', kind: 'enqueue', count: n(10_000), atOnce: 1, systems: everybody },
  { title: 'enqueue 100 at a time', kind: 'enqueue', count: n(50_000), atOnce: 100, systems: everybody },
  {
    title: 'enqueue in bulk of 1000',
    kind: 'enqueue',
    count: Math.max(1000, n(50_000)),
    atOnce: 1000,
    systems: everybody,
  },
  { title: 'process, c=1', kind: 'process', count: n(50_000), atOnce: 1, systems: everybody },
  { title: 'process, c=10', kind: 'process', count: n(50_000), atOnce: 10, systems: everybody },
  {
    title: 'process, c=100',
    kind: 'process',
    count: n(50_000),
    atOnce: 100,
    systems: ['ours', 'ours+interceptor', 'ours+nest', ...peers],
  },
  {
    title: 'process 1-5 ms, c=100',
    kind: 'slow',
    count: n(50_000),
    atOnce: 100,
    systems: ['ours', 'ours+nest', ...peers],
  },
  ...[10, 100].map((atOnce): Scenario => ({
    title: `batch-handlers, async interceptor, c=${atOnce}`,
    kind: 'process',
    count: n(50_000),
    atOnce,
    systems: ['ours, batch of 100', 'ours, one by one'],
  })),
  ...[
    { how: 'one by one', count: n(10_000), atOnce: 1 },
    { how: '100 at a time', count: n(50_000), atOnce: 100 },
    { how: 'in bulk of 1000', count: Math.max(1000, n(50_000)), atOnce: 1000 },
  ].map(({ how, ...sizes }): Scenario => ({
    title: `acknowledge: enqueue ${how}`,
    kind: 'enqueue',
    ...sizes,
    systems: ['ours, replicated', 'ours, acknowledged'],
  })),
  ...composed('flows of 10 and a parent', 'flow', 10, n(15_000)),
  ...composed('flows of 2,000 and a parent', 'flow', 2_000, smoke ? 1 : 75),
  ...composed('chains of 100', 'chain', 100, smoke ? 2 : 1_500),
  ...composed('a batch of 100,000', 'batch', 1, n(100_000), ['ours', 'ours, no batch']),
  {
    title: 'composition: end to start ms',
    kind: 'link-latency',
    count: smoke ? 10 : 100,
    atOnce: 1,
    systems: ['ours'],
  },
  { title: 'outbox: commit, 10 tasks each', kind: 'outbox-add', count: n(20_000), atOnce: 10, systems: inDatabases },
  { title: 'outbox: from rows to the queue', kind: 'outbox-relay', count: n(50_000), atOnce: 1, systems: ['ours'] },
  { title: 'outbox: from rows to handlers', kind: 'outbox-run', count: n(20_000), atOnce: 100, systems: inDatabases },
  {
    title: 'outbox: commit to handler ms',
    kind: 'outbox-latency',
    count: smoke ? 10 : 100,
    atOnce: 1,
    systems: inDatabases,
  },
  repeated('plain tasks', 'uniqueness-plain', 0),
  repeated('a lock per task', 'uniqueness-unique', 0),
  repeated('existing, 1,000 keys', 'uniqueness-existing', 1_000),
  repeated('debounce, 1,000 keys', 'uniqueness-debounce', 1_000),
  repeated('throttle, 1,000 keys', 'uniqueness-throttle', 1_000),
  turns('enqueue in bulk of 1000', 'fairness-enqueue', 100_000, keyed),
  turns('process, c=50', 'fairness-process', 100_000, keyed),
  turns('small behind large ms', 'fairness-wait-latency', 100_000, ['fair queue', 'plain queue', 'equal shares']),
  {
    title: 'durable: two tasks for the CPU, ms',
    kind: 'threads-cpu-latency',
    count: smoke ? 1 : 5,
    atOnce: 2,
    systems: ['two threads', 'one thread'],
  },
  {
    title: 'durable: a call of a thread, µs per task',
    kind: 'threads-call-latency',
    count: n(20_000),
    atOnce: 1,
    systems: ['one thread', 'no thread'],
  },
  awaited('enqueue to handler ms', 'results-pickup-latency', 200, 1),
  awaited('call to result ms', 'results-call-latency', 200, 1),
  awaited('1,000 waits at once', 'results-waits', 50_000, 1_000),
  stepped('steps, one workflow at a time', 'steps-run', 5_000, 1, durables),
  stepped('steps, 50 workflows at a time', 'steps-run', 20_000, 50, durables),
  stepped('100,000 tasks fall asleep', 'steps-sleep', 100_000, 100, ['ours']),
  stepped('signal to handler ms', 'steps-signal-latency', 200, 1, ['ours']),
  { title: 'idle latency ms', kind: 'latency', count: smoke ? 3 : 100, atOnce: 10, systems: everybody },
].filter(({ title, kind }, place, all) =>
  smoke && !only ? all.findIndex((other) => other.kind === kind) === place : !only || title.includes(only),
) as Scenario[];
const chosen = roundTrip ? scenarios.flatMap(slower) : scenarios;

const here = fileURLToPath(new URL('.', import.meta.url));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startRedis(port: number, dir: string): Promise<ChildProcess> {
  const server = spawn('redis-server', ['--port', `${port}`, '--save', '', '--dir', dir], { stdio: 'ignore' });
  server.on('error', (error) => {
    console.error(`redis-server does not start (${error.message}); install it: apt-get install redis-server`);
    process.exit(1);
  });
  const redis = new Redis(port, { maxRetriesPerRequest: 100, retryStrategy: () => 50 });
  redis.on('error', () => {});
  await redis.ping();
  redis.disconnect();
  return server;
}

/** Builds the Go program. Without Go its column is missing, and the table says so. */
function buildGo(dir: string): string | undefined {
  const cwd = join(here, '..', 'go');
  const program = join(dir, 'bench-go');
  for (const go of ['go', '/usr/local/go/bin/go']) {
    // -trimpath like the interop tests: this reuses the packages that they have compiled.
    const built = spawnSync(go, ['build', '-trimpath', '-o', program, '.'], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (built.status === 0) return program;
  }
  return undefined;
}

/** One system in one scenario, once. */
interface Run {
  readonly system: string;
  readonly scenario: Scenario;
}

/**
 * What is measured in one process: one run. In a smoke run, where to start a process takes far longer than to run what it measures, all
 * that begins with the same word.
 */
function inProcesses(runs: readonly Run[]): Run[][] {
  if (!smoke) return runs.map((run) => [run]);
  const first = ({ system, scenario }: Run, place: number) => (system === GO ? place : scenario.kind.split('-')[0]);
  const processes = new Map<number | string | undefined, Run[]>();
  for (const [place, run] of runs.entries()) {
    const key = first(run, place);
    processes.set(key, [...(processes.get(key) ?? []), run]);
  }
  return [...processes.values()];
}

/** Starts a process that measures these, and ends. */
function measure(runs: readonly Run[], port: number, go: string | undefined): Promise<Measurement[]> {
  const ofGo = runs[0]!.system === GO;
  const numbers = runs.map(({ system, scenario: { kind, count, atOnce } }) => {
    const all = [kind, count, atOnce, roundTrip ? Math.min(warm, count) : warm];
    return ofGo ? all : [system, ...all];
  });
  const [command, args] = ofGo
    ? [go!, [numbers[0]![0]!, port, ...numbers[0]!.slice(1)].map(String)]
    : [process.execPath, [join(here, 'run.js'), `${port}`, JSON.stringify(numbers)]];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      const lines = output.split('\n').filter((line) => line.startsWith('{'));
      if (code === 0 && lines.length === runs.length) return resolve(lines.map((line) => JSON.parse(line)));
      const { system, scenario } = runs[lines.length] ?? runs.at(-1)!;
      reject(new Error(`${system}, ${scenario.title}: exit code ${code}\n${output}`));
    });
  });
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const figure = (value: number, latency: boolean): string =>
  latency ? value.toFixed(2) : value >= 1000 ? `${(value / 1000).toFixed(1)}k` : value.toFixed(0);

function row(system: string, scenario: Scenario, runs: readonly Measurement[], reference: number): string[] {
  const latency = scenario.kind.endsWith('latency');
  const value = median(runs.map((run) => run.value));
  const one = (key: 'cpu' | 'redis' | 'rss' | 'bytes' | 'p95', digits = 0): string => {
    const values = runs.map((run) => run[key]).filter((entry) => entry !== undefined);
    return values.length > 0 ? median(values).toFixed(digits) : '';
  };
  const spread = `${figure(Math.min(...runs.map((run) => run.value)), latency)}-${figure(Math.max(...runs.map((run) => run.value)), latency)}`;
  const ratio = (value / reference).toFixed(2);
  return [
    scenario.title,
    system,
    figure(value, latency),
    spread,
    ratio,
    one('p95', 2),
    one('cpu', 1),
    one('redis', 1),
    one('rss'),
    one('bytes'),
  ];
}

function print(rows: readonly string[][]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  for (const cells of rows) {
    console.log(
      cells
        .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join('  '),
    );
  }
}

async function main(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'asynq-bench-'));
  const port = await freePort();
  const server = await startRedis(port, dir);
  const go = buildGo(dir);
  if (!go) console.log('Go asynq is NOT in this table: no Go toolchain was found, or its program did not build.');
  const redis = new Redis(port);
  const proxy = roundTrip ? await startProxy(go, await freePort(), port, roundTrip) : undefined;
  const databasePort = await freePort();
  const needsDatabase = chosen.some(({ kind, systems }) => kind.startsWith('outbox-') || systems.includes('dbos'));
  const stopDatabase = needsDatabase ? await startPostgres(databasePort) : undefined;
  process.env['BENCH_POSTGRES_PORT'] = `${databasePort}`;
  const peer = chosen.every(({ kind }) => kind.startsWith('outbox-')) ? 'graphile-worker' : 'bullmq';
  const against = asked && !asked.includes(peer) ? asked.at(-1)! : peer;
  const isMeasured = asked || chosen.some(({ systems }) => systems.includes(peer));
  const rows = [
    [
      'scenario',
      'system',
      'per second',
      'min-max',
      `to ${isMeasured ? against : 'the last'}`,
      'p95',
      'cpu ms/1000',
      'redis µs',
      'rss MB',
      'bytes/task',
    ],
  ];
  try {
    const runs = chosen.flatMap((scenario) => {
      const systems = scenario.systems.filter((system) => (go || system !== GO) && (!asked || asked.includes(system)));
      return Array.from({ length: rounds }, () => systems.map((system) => ({ system, scenario }))).flat();
    });
    const measured = new Map<Scenario, Map<string, Measurement[]>>();
    for (const some of inProcesses(runs)) {
      await redis.flushall();
      const measurements = await measure(some, proxy?.port ?? port, go);
      for (const [place, { system, scenario }] of some.entries()) {
        const ofScenario = measured.get(scenario) ?? new Map<string, Measurement[]>();
        measured.set(scenario, ofScenario.set(system, [...(ofScenario.get(system) ?? []), measurements[place]!]));
        console.error(`measured: ${scenario.title}: ${system}`);
      }
    }
    for (const [scenario, ofSystems] of measured) {
      const compared = ofSystems.get(against) ?? [...ofSystems.values()].at(-1)!;
      const reference = median(compared.map((run) => run.value));
      for (const [system, some] of ofSystems) rows.push(row(system, scenario, some, reference));
    }
  } finally {
    redis.disconnect();
    server.kill('SIGKILL');
    proxy?.stop();
    stopDatabase?.();
    rmSync(dir, { recursive: true, force: true });
  }
  const far = proxy ? `, a round trip of ${proxy.milliseconds.toFixed(2)} ms` : '';
  console.log(`Node ${process.version}, ${availableParallelism()} cores, ${rounds} interleaved runs, medians${far}`);
  print(rows);
}

await main();
