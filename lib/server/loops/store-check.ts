import type { OperationsRole } from '../../broker/operations.js';
import type { AsynqEvents } from '../../events/events.js';

/** A greater difference of the clocks is reported; a recoverer's grace is 30 s. */
const MAX_CLOCK_SKEW_MS = 10_000;
/** The oldest Redis that has all the scripts need. */
const MIN_VERSION = [6, 2] as const;

export interface StoreCheckOptions {
  readonly broker: { readonly operations: Pick<OperationsRole, 'storeInfo'> };
  readonly events: AsynqEvents;
}

/** Checks once, at the start, whether Redis is set up for tasks. */
export class StoreCheck {
  constructor(private readonly options: StoreCheckOptions) {}

  async runOnce(): Promise<number> {
    const { broker, events } = this.options;
    const facts = await broker.operations.storeInfo();
    const evicting = facts.find(({ evictionPolicy = 'noeviction' }) => evictionPolicy !== 'noeviction');
    if (evicting) events.emit('storeEvicts', { address: evicting.address, policy: evicting.evictionPolicy! });
    const old = facts.find(({ version }) => version !== undefined && isOld(version));
    if (old)
      events.emit('storeOutdated', { address: old.address, version: old.version!, needed: MIN_VERSION.join('.') });
    const skewed = facts.find(({ ahead = 0 }) => Math.abs(ahead) > MAX_CLOCK_SKEW_MS);
    if (skewed) events.emit('storeClockDiffers', { address: skewed.address, ahead: skewed.ahead! });
    return Infinity;
  }
}

function isOld(version: string): boolean {
  const [major = NaN, minor = NaN] = version.split('.').map(Number);
  return major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1]);
}
