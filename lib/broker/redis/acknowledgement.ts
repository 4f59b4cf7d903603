import { Cluster } from 'ioredis';
import { InvalidOptionError } from '../../errors.js';
import type { Acknowledge } from '../../task/acknowledge.js';
import { isReply } from './connection/broker-error.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import { slotOf } from './connection/slot.js';
import { type Argument, sendScript } from './scripts/script-command.js';
import type { ScriptName } from './scripts/script-registry.js';
import { scriptSource } from './scripts/script-source.js';

/** How many have what was written. */
export interface Copies {
  readonly replicas: number;
  /** The file of the master has it. */
  readonly disk: boolean;
}

/** Whether that is what was asked for. */
export const isEnough = ({ replicas, disk }: Copies, wanted: Acknowledge): boolean =>
  replicas >= wanted.replicas && (disk || !wanted.disk);

/**
 * Runs a script, and waits until replicas or files have what it wrote, over the connection `acknowledge`: Redis replies to nothing else
 * there meanwhile. WAIT is about the writes before it on its own connection, so both are written to it at once.
 */
export class Acknowledgements {
  /** Queues whose server can wait for its file. */
  private readonly waitsForDisk = new Set<string>();

  constructor(private readonly connections: RedisConnections) {}

  /** @throws InvalidOptionError when the server cannot wait for its file; nothing is written */
  async requireDisk(queue: string, key: string): Promise<void> {
    if (this.waitsForDisk.has(queue)) return;
    await this.connections.run('acknowledge', 'WAITAOF', async (client) => {
      const node = nodeOf(client, key);
      await node.call('WAITAOF', 1, 0, 1).catch((error: unknown) => {
        if (!isReply(error) || !/unknown command|appendonly/i.test((error as Error).message)) throw error;
        throw new InvalidOptionError(
          `acknowledge: the Redis of queue "${queue}" cannot wait for its disk: ${(error as Error).message}. disk: true needs ` +
            'Redis 7.2 or later with appendonly yes; leave it out, or wait for replicas',
          { cause: error },
        );
      });
    });
    this.waitsForDisk.add(queue);
  }

  /**
   * @returns the reply of the script, and who has what it wrote. That says nothing when it wrote nothing: Redis 7.2 and later wait for the
   * writes of this connection alone, so a script that finds a task writes something of it again
   */
  run(
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
    acknowledge: Acknowledge,
  ): Promise<readonly [reply: unknown, copies: Copies]> {
    return this.connections.run('acknowledge', name, async (client) => {
      const known = await this.send(client, 'evalsha', name, keys, argv, acknowledge);
      return known ?? (await this.send(client, 'eval', name, keys, argv, acknowledge))!;
    });
  }

  /** `undefined`: Redis does not know the script; nothing was done. */
  private async send(
    client: RedisClient,
    how: 'evalsha' | 'eval',
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
    { replicas, disk, timeout }: Acknowledge,
  ): Promise<readonly [unknown, Copies] | undefined> {
    const { sha1, text, part } = scriptSource(name);
    const node = nodeOf(client, keys[0]!);
    // Nothing may come between these two: they must go through one socket.
    const written = sendScript(node, how, how === 'eval' ? text : sha1, keys, part ? [...argv, part] : argv);
    const waited = disk ? node.call('WAITAOF', 1, replicas, timeout) : node.call('WAIT', replicas, timeout);
    const [reply, count] = await Promise.allSettled([written, waited]);
    if (reply.status === 'rejected') {
      if (how === 'evalsha' && String(reply.reason).includes('NOSCRIPT')) return undefined;
      if (client.isCluster && /MOVED|ASK/.test(String(reply.reason))) (client as Cluster).refreshSlotsCache();
      throw reply.reason;
    }
    if (count.status === 'rejected') throw count.reason;
    const [local, others] = Array.isArray(count.value) ? (count.value as number[]) : [0, count.value as number];
    return [reply.value, { replicas: others!, disk: local! > 0 }];
  }
}

/** The master of a key: its client has one connection, and does not reconnect in a cluster. */
function nodeOf(client: RedisClient, key: string): RedisClient & { call(...args: unknown[]): Promise<unknown> } {
  if (!client.isCluster) return client as never;
  const cluster = client as Cluster;
  const address = cluster.slots[slotOf(key)]?.[0];
  const node = cluster.nodes('master').find(({ options }) => `${options.host}:${options.port}` === address);
  if (node) return node as never;
  throw new Error("Cluster isn't ready: the master of the slot is not known"); // as ioredis says it; nothing was sent
}
