import type { BatchesRole } from '../batches.js';

export class RedisBatches implements BatchesRole {
  open(): never {
    throw new Error('not built yet');
  }
  reserve(): never {
    throw new Error('not built yet');
  }
  add(): never {
    throw new Error('not built yet');
  }
  confirm(): never {
    throw new Error('not built yet');
  }
  close(): never {
    throw new Error('not built yet');
  }
  progress(): never {
    throw new Error('not built yet');
  }
  batches(): never {
    throw new Error('not built yet');
  }
  delete(): never {
    throw new Error('not built yet');
  }
}
