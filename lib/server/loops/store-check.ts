import type { OperationsRole } from '../../broker/operations.js';
import type { AsynqEvents } from '../../events/events.js';

/**
 * Clocks differ when it is by more than that, milliseconds: well before a recoverer, which waits 30
 * s, takes a lease for lost.
 */
const SKEW = 10_000;
/** The oldest Redis that has all the scripts need. */
const OLDEST = [6, 2] as const;

export interface StoreCheckOptions {
  readonly broker: { readonly operations: Pick<OperationsRole, 'storeFacts'> };
  readonly events: AsynqEvents;
}

/** Looks once, at the start, whether Redis is set up for tasks. */
export class StoreCheck {
  constructor(private readonly options: StoreCheckOptions) {}

  async runOnce(): Promise<number> {
    const { broker, events } = this.options;
    const facts = await broker.operations.storeFacts();
    const evicting = facts.find(({ evictionPolicy = 'noeviction' }) => evictionPolicy !== 'noeviction');
    if (evicting) events.emit('storeEvicts', { address: evicting.address, policy: evicting.evictionPolicy! });
    const old = facts.find(({ version }) => version !== undefined && isOld(version));
    if (old) events.emit('storeOutdated', { address: old.address, version: old.version!, needed: OLDEST.join('.') });
    const skewed = facts.find(({ ahead = 0 }) => Math.abs(ahead) > SKEW);
    if (skewed) events.emit('storeClockDiffers', { address: skewed.address, ahead: skewed.ahead! });
    return Infinity;
  }
}

function isOld(version: string): boolean {
  const [major = NaN, minor = NaN] = version.split('.').map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}
