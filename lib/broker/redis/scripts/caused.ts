import type { RunNews } from '../../link-news.js';
import type { Caused, LinkNews, Parcel } from '../../links.js';
import { PackedReader } from './packed-reader.js';
import { readSummary } from './stored-runs.js';

/**
 * What a script has brought about in and from a place, as L.parcels of links.lua packs it. News have no destination; what has an id
 * then is the end of a run.
 */
export function readCaused(place: string, packed: Buffer): Caused {
  const reader = new PackedReader(packed);
  const parcels: Parcel[] = [];
  const news: LinkNews[] = [];
  while (reader.more()) {
    const [to, key, body, data] = [reader.text(), reader.text(), reader.text(), reader.view()];
    if (to !== '') parcels.push({ from: place, to, key, body, data });
    else if (key !== '') news.push(runEnded(place, key, data, body));
    else news.push(Object.assign(JSON.parse(body) as LinkNews, { queue: place }));
  }
  return news.length > 0 ? { parcels, news } : { parcels };
}

/** Both, in order. */
export function joined(one: Caused, other: Caused): Caused {
  const news = [...(one.news ?? []), ...(other.news ?? [])];
  return { parcels: [...one.parcels, ...other.parcels], ...(news.length > 0 ? { news } : {}) };
}

/** @param counts and @param options of the run, as shared/runs.lua writes them */
function runEnded(place: string, run: string, counts: Buffer, options: string): LinkNews {
  const { queue, id, name, state, steps, failed, startedAt, endedAt = 0 } = readSummary(place, run, counts, options);
  return { kind: 'run', queue, id, name, state: state as RunNews['state'], steps, failed, startedAt, endedAt };
}
