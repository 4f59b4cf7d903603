import { messageOf } from '../text/errors.js';
import { notify } from '../ui/notices.js';
import { refreshLive } from './live.js';

/** Performs an action and shows its result; returns whether it succeeded. */
export async function perform(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
  } catch (error) {
    notify(messageOf(error), { failed: true });
    return false;
  }
  notify(done);
  refreshLive();
  return true;
}
