import { describe, expect, it } from 'vitest';
import { UndecodableMessageError } from '../../lib/errors.js';
import { decodeTaskMessage, encodeTaskMessage } from '../../lib/wire/codec.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { bytesOf, hexOf, readGolden } from './golden.js';
import { zeroMessage } from '../support/messages.js';

/** How Go's protobuf library reads some bytes as a TaskMessage when it does not check UTF-8. */
interface Verdict {
  Name?: string;
  Hex: string;
  Refused?: boolean;
  Fields?: Record<string, string>;
  Headers?: [string, string][];
  Unknown?: string;
}

const NAMES: Record<string, keyof TaskMessage> = {
  retry: 'maxRetry',
  error_msg: 'errorMsg',
  unique_key: 'uniqueKey',
  last_failed_at: 'lastFailedAt',
  completed_at: 'completedAt',
  group_key: 'groupKey',
};
const INTEGERS = ['retry', 'retried', 'timeout', 'deadline', 'last_failed_at', 'retention', 'completed_at'];

const lenient = (hex: string): string => bytesOf(hex).toString();
const clamped = (digits: string): number =>
  Math.min(Math.max(Number(digits), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);

function expected({ Fields = {}, Headers }: Verdict): TaskMessage {
  const fields = Object.entries(Fields).map(([name, value]): [string, unknown] => {
    if (INTEGERS.includes(name)) return [NAMES[name] ?? name, clamped(value)];
    return [NAMES[name] ?? name, name === 'payload' ? bytesOf(value) : lenient(value)];
  });
  const headers = Headers && Object.fromEntries(Headers.map(([key, value]) => [lenient(key), lenient(value)]));
  return zeroMessage({ ...Object.fromEntries(fields), headers });
}

/** What Go does not know is kept as it stands, beside numbers and texts that JavaScript cannot hold. */
function expectSameReading(verdict: Verdict): void {
  const { unknownFields, ...read } = decodeTaskMessage(bytesOf(verdict.Hex));
  expect(read, verdict.Hex).toEqual(expected(verdict));
  const huge = Object.values(verdict.Fields ?? {}).some((value) => /^-?\d{16,}$/.test(value));
  const isText = (name: string): boolean => name !== 'payload' && !INTEGERS.includes(name);
  const texts = Object.entries(verdict.Fields ?? {}).filter(([name]) => isText(name));
  const foreign = texts.some(([, value]) => lenient(value).includes('\ufffd'));
  if (!huge && !foreign) expect(unknownFields ? hexOf(unknownFields) : '', verdict.Hex).toBe(verdict.Unknown ?? '');
}

const verdicts = readGolden<Verdict[]>('verdicts');
const named = verdicts.filter(({ Name }) => Name);
const random = verdicts.filter(({ Name }) => !Name);

describe("bytes as Go's protobuf library judges them", () => {
  it.each(named.filter(({ Refused }) => Refused))('refused: $Name', ({ Hex }) => {
    expect(() => decodeTaskMessage(bytesOf(Hex))).toThrow(UndecodableMessageError);
  });

  it.each(named.filter(({ Refused }) => !Refused))('read: $Name', (verdict) => {
    expectSameReading(verdict);
  });

  it('600 random ones', () => {
    const refused = random.filter(({ Refused }) => Refused);
    for (const { Hex } of refused) expect(() => decodeTaskMessage(bytesOf(Hex)), Hex).toThrow(UndecodableMessageError);
    const read = random.filter(({ Refused }) => !Refused);
    for (const verdict of read) expectSameReading(verdict);
    expect(Math.min(refused.length, read.length)).toBeGreaterThan(100);
  });

  it('survive being read and written', () => {
    for (const { Hex } of verdicts.filter(({ Refused }) => !Refused)) {
      const read = decodeTaskMessage(bytesOf(Hex));
      expect(decodeTaskMessage(encodeTaskMessage(read)), Hex).toEqual(read);
    }
  });
});
