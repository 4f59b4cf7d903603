import { Cluster, Command, Redis } from 'ioredis';
import type { RedisClient } from '../connection/client-factory.js';

export type Argument = string | Buffer;

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const DOLLAR = 36;
const ZERO = 48;

/**
 * Sends EVALSHA or EVAL; the reply has buffers for text. ioredis makes several small buffers of
 * each argument as soon as one is binary, which with hundreds of arguments costs more than the rest
 * of a call: here a command is written as one buffer. A client of another copy of ioredis gets an
 * ordinary command, as it may not know ours.
 */
export function sendScript(
  client: RedisClient,
  name: 'evalsha' | 'eval',
  script: string,
  keys: readonly string[],
  argv: readonly Argument[],
): Promise<unknown> {
  if (!(client instanceof Redis || client instanceof Cluster)) {
    return (client as Redis).callBuffer(name, script, keys.length, ...keys, ...argv);
  }
  const command = new ScriptCommand(name, keys[0]!, encodeScriptCall(name, script, keys, argv));
  return client.sendCommand(command) as Promise<unknown>;
}

/**
 * A command that is already encoded. ioredis reads only the first key of its arguments, for the
 * slot.
 */
class ScriptCommand extends Command {
  constructor(
    name: string,
    firstKey: string,
    private readonly encoded: Argument,
  ) {
    super(name, ['', '1', firstKey], { replyEncoding: null });
  }

  override toWritable(): Argument {
    return this.encoded;
  }
}

/** The call in Redis' protocol: a string while all of it is text, which Node writes fastest. */
export function encodeScriptCall(
  name: string,
  script: string,
  keys: readonly string[],
  argv: readonly Argument[],
): Argument {
  let text = `*${3 + keys.length + argv.length}\r\n${headOf(name, script)}${bulk(String(keys.length))}`;
  for (let i = 0; i < keys.length; i++) text += bulk(keys[i]!);
  const bound = binaryBound(argv);
  if (bound === 0) {
    for (let i = 0; i < argv.length; i++) text += bulk(argv[i] as string);
    return text;
  }
  return encodeBinary(text, argv, bound);
}

/** Of a call by its hash, which is ASCII, nothing is measured. */
const headOf = (name: string, script: string): string =>
  name === 'evalsha' ? `$7\r\nevalsha\r\n$${script.length}\r\n${script}\r\n` : bulk(name) + bulk(script);

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** The maximal bytes of the arguments, 0 when none is binary. */
function binaryBound(argv: readonly Argument[]): number {
  let bound = 0;
  let binary = false;
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    if (typeof argument === 'string') {
      bound += argument.length * 3 + 16;
    } else {
      bound += argument.length + 16;
      binary = true;
    }
  }
  return binary ? bound : 0;
}

function encodeBinary(head: string, argv: readonly Argument[], bound: number): Buffer {
  const bytes = Buffer.allocUnsafe(head.length * 3 + bound);
  let text = head;
  let offset = 0;
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    if (typeof argument === 'string') {
      text += bulk(argument);
      continue;
    }
    if (text !== '') {
      offset += bytes.write(text, offset);
      text = '';
    }
    offset = writeLength(bytes, offset, argument.length);
    bytes.set(argument, offset);
    offset = writeLineEnd(bytes, offset + argument.length);
  }
  offset += bytes.write(text, offset);
  return bytes.subarray(0, offset);
}

/** `$<length>\r\n`, digit by digit: a call into Node costs more than these bytes. */
function writeLength(bytes: Buffer, start: number, length: number): number {
  let digits = 1;
  for (let rest = length; rest > 9; rest = Math.floor(rest / 10)) digits++;
  bytes[start] = DOLLAR;
  let rest = length;
  for (let at = start + digits; at > start; at--) {
    bytes[at] = ZERO + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return writeLineEnd(bytes, start + 1 + digits);
}

function writeLineEnd(bytes: Buffer, offset: number): number {
  bytes[offset] = CARRIAGE_RETURN;
  bytes[offset + 1] = LINE_FEED;
  return offset + 2;
}
