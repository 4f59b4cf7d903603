import { WrongKeyTypeError } from '../../../errors.js';
import { isReply } from '../connection/broker-error.js';
import type { RedisClient } from '../connection/client-factory.js';
import type { ConnectionPurpose, RedisConnections } from '../connection/connections.js';
import { type Argument, sendScript } from './script-command.js';
import { SCRIPTS, type ScriptName } from './script-registry.js';
import { KEY_TYPES } from './script-shape.js';
import { scriptSource } from './script-source.js';

/**
 * Runs the scripts of lua/ by their hash. If Redis does not know it (first use, SCRIPT FLUSH,
 * restart, failover), sends the text once, which Redis then keeps.
 */
export class Scripts {
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
    return this.connections.run(purpose, name, (client) => evaluate(client, name, keys, argv));
  }
}

async function evaluate(
  client: RedisClient,
  name: ScriptName,
  keys: readonly string[],
  argv: readonly Argument[],
): Promise<unknown> {
  const { sha1, text, part } = scriptSource(name);
  const sent = part ? [...argv, part] : argv;
  try {
    return await sendScript(client, 'evalsha', sha1, keys, sent).catch((error: unknown) => {
      if (!says(error, 'NOSCRIPT')) throw error;
      return sendScript(client, 'eval', text, keys, sent);
    });
  } catch (error) {
    if (says(error, 'WRONGTYPE')) throw await explainWrongType(client, name, keys, error);
    throw error;
  }
}

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
