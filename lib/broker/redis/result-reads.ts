import type { ChainableCommander } from 'ioredis';
import type { Keyspace } from '../../wire/keys.js';
import { toBrokerError } from './connection/broker-error.js';
import type { RedisConnections } from './connection/connections.js';
import type { StoredResults } from './stored-results.js';
import { hasResult, readBefore } from './scripts/stored-runs.js';

/** The results of steps before a step, by name; undefined without such a run. */
export type ResultsBefore = ReadonlyMap<string, Buffer> | undefined;

interface Call {
  readonly add: (pipeline: ChainableCommander) => void;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const NOTHING = Buffer.alloc(0);

/** Results that one command reads. */
const RESULTS_AT_ONCE = 500;

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
  async named(
    queue: string,
    run: string,
    steps: readonly string[],
    since: string | undefined,
  ): Promise<(Buffer | undefined)[]> {
    const known = since === undefined ? undefined : this.stored.all(queue, run, since, steps);
    if (known) return known;
    const key = this.keyspace.queue(queue).run(run);
    const fields = steps.flatMap((name) => [`s:${name}`, `v:${name}`]);
    const found = await this.ask<(Buffer | null)[]>(queue, (pipeline) => pipeline.hmgetBuffer(key, ...fields));
    return steps.map((_, n) => (hasResult(found[2 * n] ?? NOTHING) ? (found[2 * n + 1] ?? undefined) : undefined));
  }

  /** @returns those of the steps before this one, in the order of its definition */
  async before(queue: string, run: string, step: string, since: string | undefined): Promise<ResultsBefore> {
    const key = this.keyspace.queue(queue).run(run);
    const [counts, place] = await this.ask<(Buffer | null)[]>(queue, (pipeline) =>
      pipeline.hmgetBuffer(key, 'c', `d:${step}`),
    );
    if (!counts) return undefined;
    const names = place ? readBefore(place) : [];
    const results = new Map<string, Buffer>();
    for (let from = 0; from < names.length; from += RESULTS_AT_ONCE) {
      const page = names.slice(from, from + RESULTS_AT_ONCE);
      for (const [index, result] of (await this.named(queue, run, page, since)).entries()) {
        if (result) results.set(page[index]!, result);
      }
    }
    return results;
  }

  private ask<T>(queue: string, add: (pipeline: ChainableCommander) => unknown): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call: Call = { add, resolve: resolve as (reply: unknown) => void, reject };
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
      const replies = await this.connections.run('monitor', 'results', (client) => execute(client.pipeline(), calls));
      for (const [index, { resolve, reject }] of calls.entries()) {
        const [error, reply] = replies[index]!;
        if (error) reject(toBrokerError(error, 'results'));
        else resolve(reply);
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}

/** @throws the error of the first command: the connection is lost, or Redis refuses all for now */
async function execute(pipeline: ChainableCommander, calls: readonly Call[]): Promise<[Error | null, unknown][]> {
  for (const { add } of calls) add(pipeline);
  const replies = (await pipeline.exec()) ?? [];
  const errors = replies.map(([error]) => error);
  if (errors[0] && errors.every((error) => error !== null)) throw errors[0];
  return replies;
}
