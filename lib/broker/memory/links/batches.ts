import type { BatchesRole } from '../../batches.js';
import type { LinkEngine } from './engine.js';

export class MemoryBatches implements BatchesRole {
  constructor(readonly engine: LinkEngine) {}
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
