import type { ConsumerRole, Lease, StoredResult } from '../../broker/broker.js';
import { requirePayloadSize } from '../../task/payload-size.js';

/** What handlers return or write, as it is stored. */
export class Results {
  constructor(
    private readonly broker: Pick<ConsumerRole, 'writeResult'>,
    private readonly maxBytes: number,
    private readonly encoder: (result: unknown) => StoredResult | undefined,
  ) {}

  /** @throws InvalidTaskError when there are too many bytes, and what the encoder throws */
  encode(result: unknown): StoredResult | undefined {
    return requirePayloadSize(this.encoder(result), this.maxBytes, 'the result');
  }

  /** Stores a result on a task that runs. Returns whether its lease is still ours. */
  async write(lease: Lease, result: unknown): Promise<boolean> {
    return this.broker.writeResult(lease, Buffer.from((this.encode(result) ?? '') as string));
  }
}
