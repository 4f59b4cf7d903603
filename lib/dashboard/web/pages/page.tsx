import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { visible } from '../text/visible.js';
import { config } from '../state/config.js';

interface PageProps {
  title: string;
  /** What stands above the title: where this is. */
  above?: ComponentChildren;
  /** The heading, when it is more than the title. */
  heading?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

let first = true;

/** A page: it names the tab, and takes the focus when one comes to it by a link. */
export function Page({ title, above, heading, actions, children }: PageProps) {
  const element = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${visible(title)} · ${config.get()?.title ?? 'asynq'}`;
  }, [title]);
  useEffect(() => {
    if (!first) {
      window.scrollTo(0, 0);
      element.current?.focus({ preventScroll: true });
    }
    first = false;
  }, []);
  return (
    <div class="page">
      <header class="page-head">
        <div class="page-title">
          {above && <p class="above">{above}</p>}
          <h1 ref={element} tabIndex={-1}>
            {heading ?? title}
          </h1>
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
