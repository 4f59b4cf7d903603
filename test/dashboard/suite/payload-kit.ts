import type { PayloadDecoder } from 'nestjs-asynq/dashboard';

/** A task as the API shows it. */
export interface Shown {
  payload: string;
  payload_base64: string | null;
  payload_decoded: { decoder: string; value: unknown } | null;
  result: string;
  result_decoded: { decoder: string; value: unknown } | null;
  error_message: string;
  headers: Record<string, string>;
  redacted: boolean;
  actions: string[];
}

/** message Order { string customer = 1; fixed32 cents = 2; } as a Go team would send it. */
export const orders: PayloadDecoder = {
  name: 'protobuf',
  decode(bytes, { type }) {
    if (!type.startsWith('order:')) return undefined;
    if (bytes[0] !== 0x0a) throw new Error('no order');
    const end = 2 + bytes[1]!;
    return { customer: bytes.toString('utf8', 2, end), cents: bytes.readUInt32LE(end + 1) };
  },
};

export const order = (customer: string, cents: number): Buffer => {
  const name = Buffer.from(customer);
  const amount = Buffer.alloc(5);
  amount[0] = 0x15;
  amount.writeUInt32LE(cents, 1);
  return Buffer.concat([Buffer.from([0x0a, name.length]), name, amount]);
};
