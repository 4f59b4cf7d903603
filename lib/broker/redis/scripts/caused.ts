import type { Caused, LinkNews, Parcel } from '../../links.js';
import { PackedReader } from './packed-reader.js';

/** What a script has brought about in and from a place, as L.parcels of links.lua packs it: news have no destination. */
export function readCaused(place: string, packed: Buffer): Caused {
  const reader = new PackedReader(packed);
  const parcels: Parcel[] = [];
  const news: LinkNews[] = [];
  while (reader.more()) {
    const [to, key, body, data] = [reader.text(), reader.text(), reader.text(), reader.view()];
    if (to === '') news.push(Object.assign(JSON.parse(body) as LinkNews, { queue: place }));
    else parcels.push({ from: place, to, key, body, data });
  }
  return news.length > 0 ? { parcels, news } : { parcels };
}

/** Both, in order. */
export function joined(one: Caused, other: Caused): Caused {
  const news = [...(one.news ?? []), ...(other.news ?? [])];
  return { parcels: [...one.parcels, ...other.parcels], ...(news.length > 0 ? { news } : {}) };
}
