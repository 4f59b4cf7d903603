import { Observable } from 'rxjs';
import { AsynqClient as Client } from '../client/client.js';
import type { TaskWithResult } from '../client/types.js';
import type { FollowOptions } from '../results/options.js';
import type { TaskUpdate } from '../results/updates.js';
import type { Jsonify } from '../task/jsonify.js';

/**
 * Enqueues tasks, waits for their results, and follows them. A task is stored when the promise resolves.
 *
 * Calls made in the same tick are sent together, in one round trip per queue: concurrent calls need
 * no batching.
 */
export class AsynqClient extends Client {
  /**
   * What happens to a task, from now on to its end: its state, progress, log, chunks, and its result. What it has said before comes first, as far
   * as it is kept. Each subscriber follows it anew; all of a connection share a pair of sockets.
   *
   * @example
   * \@Sse('invoices/:id') follow(\@Param('id') id: string) { return this.asynq.follow({ queue: 'default', id }); }
   *
   * @param task the TaskInfo, or its queue and id
   * @returns completes after the result; an error as `result` rejects with ends it
   * @throws InvalidTaskError when an option is invalid
   */
  follow<R = unknown>(task: TaskWithResult<R>, options: FollowOptions = {}): Observable<TaskUpdate<Jsonify<R>>> {
    const updates = this.updatesOf(task, options);
    return new Observable<TaskUpdate>((subscriber) => updates(subscriber)) as Observable<TaskUpdate<Jsonify<R>>>;
  }
}
