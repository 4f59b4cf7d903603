import { useMay, useMaySeeRedis } from '../state/config.js';
import { useStore } from '../store.js';
import { Dialog } from '../ui/dialog.js';
import { KEY_GROUPS } from './key-list.js';
import { helpOpen } from './keys.js';

export function Help() {
  const open = useStore(helpOpen);
  const hidden = [...(useMaySeeRedis() ? [] : ['g r']), ...(useMay()('act') ? [] : ['g e'])];
  if (!open) return null;
  const close = (): void => helpOpen.set(false);
  return (
    <Dialog wide title="Keys" onClose={close}>
      <div class="key-groups">
        {KEY_GROUPS.map(({ title, keys: all }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl class="keys">
              {all
                .filter(([keys]) => !hidden.includes(keys))
                .map(([keys, what]) => (
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
          </section>
        ))}
      </div>
      <p class="faint licences">
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
