import type { Cluster } from 'ioredis';
import { WrongKeyTypeError } from '../../../errors.js';
import { isReply } from '../connection/broker-error.js';
import type { RedisClient } from '../connection/client-factory.js';
import type { ConnectionPurpose, RedisConnections } from '../connection/connections.js';
import { slotOf } from '../connection/slot.js';
import { type Argument, sendScript } from './script-command.js';
import { SCRIPTS, type ScriptName } from './script-registry.js';
import { KEY_TYPES } from './script-shape.js';
import { scriptSource } from './script-source.js';

/**
 * Runs the scripts of lua/ by their hash. If Redis does not know it (first use, SCRIPT FLUSH,
 * restart, failover), sends the text, which Redis then keeps.
 */
export class Scripts {
  /** Texts on their way, by node and hash. */
  private readonly texts = new WeakMap<RedisClient, Set<string>>();

  constructor(private readonly connections: RedisConnections) {}

  /**
   * @returns the reply, with buffers for text
   * @throws BrokerUnavailableError: ask `wasSent(error)` whether it may have happened; WrongKeyTypeError: nothing was written
   */
  run(
    purpose: ConnectionPurpose,
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
  ): Promise<unknown> {
    return this.connections.run(purpose, name, (client) => this.evaluate(client, name, keys, argv));
  }

  /** Every call comes this way: without `async` it makes one promise, not three. */
  private evaluate(
    client: RedisClient,
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
  ): Promise<unknown> {
    const { part } = scriptSource(name);
    const sent = part ? [...argv, part] : argv;
    return byHash(client, name, keys, sent).catch((error: unknown) => this.refused(client, name, keys, sent, error));
  }

  private async refused(
    client: RedisClient,
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
    reason: unknown,
  ): Promise<unknown> {
    try {
      if (says(reason, 'NOSCRIPT')) return await this.evaluateUnknown(client, name, keys, argv);
      throw reason;
    } catch (error) {
      if (says(error, 'WRONGTYPE')) throw await explainWrongType(client, name, keys, error);
      throw error;
    }
  }

  /**
   * Thousands of calls may be under way when Redis loses its scripts, and a text is some kilobytes.
   * The first to learn of it sends the text. Redis gets it before all that the same connection
   * sends later, so the others send the hash again.
   */
  private evaluateUnknown(
    client: RedisClient,
    name: ScriptName,
    keys: readonly string[],
    argv: readonly Argument[],
  ): Promise<unknown> {
    let texts = this.texts.get(client);
    if (!texts) this.texts.set(client, (texts = new Set()));
    const text = `${nodeOf(client, keys[0]!)} ${scriptSource(name).sha1}`;
    if (!texts.has(text)) {
      texts.add(text);
      return byText(client, name, keys, argv).finally(() => texts.delete(text));
    }
    return byHash(client, name, keys, argv).catch((error: unknown) => {
      if (!says(error, 'NOSCRIPT')) throw error;
      return byText(client, name, keys, argv); // the text was refused, or lost again
    });
  }
}

type Send = (
  client: RedisClient,
  name: ScriptName,
  keys: readonly string[],
  argv: readonly Argument[],
) => Promise<unknown>;

const byHash: Send = (client, name, keys, argv) => sendScript(client, 'evalsha', scriptSource(name).sha1, keys, argv);
const byText: Send = (client, name, keys, argv) => sendScript(client, 'eval', scriptSource(name).text, keys, argv);

/** Which node of a cluster has the key, as far as the client knows; else ''. */
const nodeOf = (client: RedisClient, key: string): string =>
  client.isCluster ? ((client as Cluster).slots[slotOf(key)]?.[0] ?? '') : '';

/** Redis 6 puts a prefix before the error of a command in a script. */
const says = (error: unknown, code: string): error is Error =>
  error instanceof Error && isReply(error) && error.message.includes(code);

/** Redis does not name the key. */
async function explainWrongType(
  client: RedisClient,
  name: ScriptName,
  keys: readonly string[],
  cause: Error,
): Promise<WrongKeyTypeError> {
  const expected = SCRIPTS[name].keys.map((key) => KEY_TYPES[key]);
  const found = await Promise.all(expected.map((_, index) => client.type(keys[index]!).catch(() => 'none')));
  const wrong = expected.flatMap((type, index) =>
    found[index] === type || found[index] === 'none'
      ? []
      : `"${keys[index]}" is a ${found[index]} and must be a ${type}`,
  );
  const what = wrong.length > 0 ? wrong.join(', ') : cause.message;
  return new WrongKeyTypeError(
    `${name}: a key does not hold what asynq keeps in it: ${what}; nothing was written. ` +
      'Find out what else writes to it, or set another keyPrefix',
    { cause },
  );
}
