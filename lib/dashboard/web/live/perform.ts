import { messageOf } from '../text/errors.js';
import { tell } from '../ui/notices.js';
import { refreshLive } from './live.js';

/** Performs an action and shows its result; returns whether it succeeded. */
export async function perform(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
  } catch (error) {
    tell(messageOf(error), { failed: true });
    return false;
  }
  tell(done);
  refreshLive();
  return true;
}
