import { Store, useStore } from '../store.js';
import { Text } from './text.js';

interface Notice {
  id: number;
  text: string;
  failed: boolean;
  href?: string;
}

const notices = new Store<readonly Notice[]>([]);
let last = 0;
/** How long a message of success is shown. */
const SUCCESS_SHOWN_MS = 8000;

const dismiss = (id: number): void => notices.update((all) => all.filter((notice) => notice.id !== id));

/** Shows the result of an action. Failures stay until they are dismissed. */
export function notify(text: string, { failed = false, href }: { failed?: boolean; href?: string } = {}): void {
  const id = ++last;
  notices.update((all) => [...all.slice(-3), { id, text, failed, href }]);
  if (!failed) window.setTimeout(() => dismiss(id), SUCCESS_SHOWN_MS);
}

export function Notices() {
  const all = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {all.map((notice) => (
        <div key={notice.id} class={notice.failed ? 'notice failed' : 'notice'}>
          <p>
            <Text value={notice.text} />
            {notice.href && (
              <>
                {' '}
                <a href={notice.href}>Show it</a>
              </>
            )}
          </p>
          <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
