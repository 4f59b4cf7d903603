import type { Parcel } from '../../links.js';
import { PackedReader } from './packed-reader.js';

/** The parcels that a script has stored in the outbox of `from`, as L.parcels of links.lua packs them. */
export function readParcels(from: string, packed: Buffer): Parcel[] {
  const reader = new PackedReader(packed);
  const parcels: Parcel[] = [];
  while (reader.more()) {
    parcels.push({ from, to: reader.text(), key: reader.text(), body: reader.text(), data: reader.view() });
  }
  return parcels;
}
