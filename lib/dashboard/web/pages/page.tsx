import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { config } from '../state/config.js';
import { visible } from '../text/visible.js';

interface PageProps {
  title: string;
  /** Shown above the title: where the page belongs. */
  above?: ComponentChildren;
  /** The heading, if it is more than the title. */
  heading?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

let first = true;

/** A page. It sets the title of the tab, and takes the focus when a link leads to it. */
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
