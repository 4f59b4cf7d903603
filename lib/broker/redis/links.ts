import type { LinksRole } from '../links.js';

export class RedisLinks implements LinksRole {
  enqueue(): never {
    throw new Error('not built yet');
  }
  watch(): never {
    throw new Error('not built yet');
  }
  deliver(): never {
    throw new Error('not built yet');
  }
  acknowledge(): never {
    throw new Error('not built yet');
  }
  check(): never {
    throw new Error('not built yet');
  }
  waitOf(): never {
    throw new Error('not built yet');
  }
  places(): never {
    throw new Error('not built yet');
  }
  lease(): never {
    throw new Error('not built yet');
  }
  keep(): never {
    throw new Error('not built yet');
  }
}
