import type { Redis } from 'ioredis';
import type { StepLink } from '../../task/contexts.js';
import type { Keyspace } from '../../wire/keys.js';
import type { StoredResult } from '../broker.js';
import { toBrokerError } from './connection/broker-error.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import type { StoredResults } from './stored-results.js';
import { hasResult, readBefore } from './scripts/stored-runs.js';

/** The results of steps before a step, by name; undefined without such a run. */
export type ResultsBefore = ReadonlyMap<string, StoredResult> | undefined;

type Results = readonly (StoredResult | undefined)[];

/** A read of fields of a run. */
interface Call {
  readonly key: string;
  readonly fields: readonly string[];
  readonly resolve: (fields: Fields) => void;
  readonly reject: (error: unknown) => void;
}

type Fields = (Buffer | null)[];

const NOTHING = Buffer.alloc(0);

/** Results that one command reads. */
const RESULTS_AT_ONCE = 500;

/** What the message of a task begins with, which a step has in the place of its result until it succeeds. JSON does not. */
const MESSAGE = 0x0a;

const fieldsOf = (what: 's' | 'v', steps: readonly string[]): string[] => steps.map((step) => `${what}:${step}`);

/**
 * Reads results of steps. Tasks that start together ask together: the commands of one tick for one queue
 * are one write to the socket, which costs more than the rest of a command.
 */
export class ResultReads {
  private readonly waiting = new Map<string, Call[]>();

  constructor(
    private readonly connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly stored: StoredResults,
  ) {}

  /** @returns the results in the order of `steps`; undefined where there is none */
  named(queue: string, run: string, steps: readonly string[], since: string | undefined): Promise<Results> {
    const known = since === undefined ? [] : this.stored.of(queue, run, since, steps);
    const missing = steps.filter((_, index) => known[index] === undefined);
    return missing.length === 0 ? Promise.resolve(known) : this.complete(queue, run, steps, known, missing);
  }

  /** @returns those of the steps before this one, in the order of its definition; undefined when the run is gone, as far as something was read */
  async before({ to: queue, run, step, since, before }: StepLink): Promise<ResultsBefore> {
    let names = before;
    if (!names) {
      const [place] = await this.ask(queue, this.keyspace.queue(queue).run(run), [`d:${step}`]);
      if (!place) return (await this.isThere(queue, run)) ? new Map() : undefined;
      names = readBefore(place);
    }
    const found = await this.named(queue, run, names, since);
    if (before && found.every((result) => result === undefined) && !(await this.isThere(queue, run))) return undefined;
    const results = new Map<string, StoredResult>();
    for (let i = 0; i < names.length; i++) if (found[i] !== undefined) results.set(names[i]!, found[i]!);
    return results;
  }

  private async isThere(queue: string, run: string): Promise<boolean> {
    const [counts] = await this.ask(queue, this.keyspace.queue(queue).run(run), ['c']);
    return counts !== null;
  }

  /** @param known of the steps, as far as no result has to be read */
  private async complete(
    queue: string,
    run: string,
    steps: readonly string[],
    known: Results,
    missing: readonly string[],
  ): Promise<Results> {
    const key = this.keyspace.queue(queue).run(run);
    const read = new Map<string, Buffer>();
    const unclear: string[] = [];
    for (let from = 0; from < missing.length; from += RESULTS_AT_ONCE) {
      const page = missing.slice(from, from + RESULTS_AT_ONCE);
      const found = await this.ask(queue, key, fieldsOf('v', page));
      for (let i = 0; i < page.length; i++) {
        const value = found[i];
        if (!value?.length) continue;
        if (value[0] === MESSAGE) unclear.push(page[i]!);
        else read.set(page[i]!, value);
      }
    }
    if (unclear.length > 0) await this.complement(queue, key, unclear, read);
    return steps.map((step, index) => known[index] ?? read.get(step));
  }

  /** Of steps that have a message, or a result that begins like one. */
  private async complement(
    queue: string,
    key: string,
    steps: readonly string[],
    read: Map<string, Buffer>,
  ): Promise<void> {
    for (let from = 0; from < steps.length; from += RESULTS_AT_ONCE) {
      const page = steps.slice(from, from + RESULTS_AT_ONCE);
      const found = await this.ask(queue, key, [...fieldsOf('s', page), ...fieldsOf('v', page)]);
      for (let i = 0; i < page.length; i++) {
        if (hasResult(found[i] ?? NOTHING)) read.set(page[i]!, found[page.length + i]!);
      }
    }
  }

  private ask(queue: string, key: string, fields: readonly string[]): Promise<Fields> {
    return new Promise((resolve, reject) => {
      const call: Call = { key, fields, resolve, reject };
      const list = this.waiting.get(queue);
      if (list) list.push(call);
      else {
        this.waiting.set(queue, [call]);
        queueMicrotask(() => void this.send(queue));
      }
    });
  }

  private async send(queue: string): Promise<void> {
    const calls = this.waiting.get(queue)!;
    this.waiting.delete(queue);
    try {
      const replies = await this.connections.run('monitor', 'results', (client) => execute(client, calls));
      for (let i = 0; i < calls.length; i++) {
        const reply = replies[i]!;
        if (reply.status === 'fulfilled') calls[i]!.resolve(reply.value);
        else calls[i]!.reject(toBrokerError(reply.reason, 'results'));
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}

/** @throws the error of the first command: the connection is lost, or Redis refuses all for now */
async function execute(client: RedisClient, calls: readonly Call[]): Promise<PromiseSettledResult<Fields>[]> {
  const replies = await Promise.allSettled(client.isCluster ? inPipeline(client, calls) : inOneWrite(client, calls));
  const [first] = replies;
  if (first?.status === 'rejected' && replies.every(({ status }) => status === 'rejected')) throw first.reason;
  return replies;
}

/** Commands of ioredis without its pipeline, which costs several times more than they do. */
function inOneWrite(client: RedisClient, calls: readonly Call[]): Promise<Fields>[] {
  const { stream } = client as Partial<Redis>;
  stream?.cork();
  try {
    return calls.map(({ key, fields }) => client.hmgetBuffer(key, ...fields));
  } finally {
    stream?.uncork();
  }
}

/** Only a pipeline knows the node of a cluster. */
function inPipeline(client: RedisClient, calls: readonly Call[]): Promise<Fields>[] {
  const pipeline = client.pipeline();
  for (const { key, fields } of calls) pipeline.hmgetBuffer(key, ...fields);
  const replies = pipeline.exec();
  return calls.map(async (_, index) => {
    const [error, fields] = (await replies)?.[index] ?? [new Error('there is no reply')];
    if (error) throw error;
    return fields as Fields;
  });
}
