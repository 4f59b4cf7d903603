import { useMay, useMaySeeRedis } from '../state/config.js';
import { useStore } from '../store.js';
import { Dialog } from '../ui/dialog.js';
import { helpOpen } from './keys.js';

const KEYS = [
  ['/', 'search or filter'],
  ['g o', 'overview of all queues'],
  ['g s', 'servers'],
  ['g c', 'schedules'],
  ['g w', 'runs of workflows'],
  ['g b', 'batches'],
  ['g u', 'outbox, if there is one'],
  ['g a', 'audit trail'],
  ['g r', 'Redis'],
  ['g h', 'history, if there is a Prometheus'],
  ['g e', 'enqueue a task'],
  ['j  k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['n  p', 'next and previous page'],
  ['Esc', 'leave a field, close a dialog'],
  ['?', 'this list'],
] as const;

export function Help() {
  const open = useStore(helpOpen);
  const hidden = [...(useMaySeeRedis() ? [] : ['g r']), ...(useMay()('act') ? [] : ['g e'])];
  if (!open) return null;
  const close = (): void => helpOpen.set(false);
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="keys">
        {KEYS.filter(([keys]) => !hidden.includes(keys)).map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(/ +/).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="faint">
        <a href="assets/licenses.txt" target="_blank" rel="noreferrer">
          Licences of the software in this page
        </a>
      </p>
      <div class="dialog-foot">
        <button type="button" class="button plain" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
