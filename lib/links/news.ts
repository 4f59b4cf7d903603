import type { LinkNews } from '../broker/links.js';
import { toDate } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';

/** Emits the event of what this process has learnt about links. */
export function emitNews(events: AsynqEvents, news: LinkNews): void {
  const { queue, id } = news;
  switch (news.kind) {
    case 'wait': {
      const { type, end, state, reason } = news;
      const error = reason === undefined ? {} : { error: new Error(reason) };
      return events.emit('waitEnded', { task: { id, type, queue }, end, state, ...error });
    }
    case 'run': {
      const { name, state, steps, failed, startedAt, endedAt } = news;
      if (!events.wants('workflowEnded', state !== 'succeeded')) return;
      const times = { startedAt: toDate(startedAt), endedAt: toDate(endedAt) };
      return events.emit('workflowEnded', { queue, id, name, state, steps, failed, ...times });
    }
    case 'batch': {
      const { name, state, total, failed, openedAt, endedAt } = news;
      if (!events.wants('batchEnded', state !== 'succeeded' || failed > 0)) return;
      const times = { openedAt: toDate(openedAt), endedAt: toDate(endedAt) };
      return events.emit('batchEnded', { queue, id, name, state, total, failed, ...times });
    }
    case 'callback': {
      const { name, callback } = news;
      return events.emit('batchCalledBack', { queue, id, name, callback });
    }
  }
}
