import type { ComponentChildren } from 'preact';
import { Text } from './text.js';

/** Shown where there is nothing. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="placeholder">
    <p class="placeholder-title">{title}</p>
    {children && <div class="placeholder-body">{children}</div>}
  </div>
);

/** Grey lines where rows will be. */
export const Loading = ({ rows = 5 }: { rows?: number }) => (
  <div class="loading" role="status">
    <span class="sr-only">Loading</span>
    {Array.from({ length: rows }, (_, index) => (
      <div key={index} class="loading-row" />
    ))}
  </div>
);

interface FailureProps {
  /** `status`: the HTTP status; 0 when there was no response. */
  error: { readonly status: number; readonly message: string };
  retry?: () => void;
}

/** By HTTP status. */
const TITLES: Readonly<Record<number, string>> = {
  0: 'The application does not respond',
  401: 'You are not signed in',
  403: 'You may not see this',
  404: 'Not found',
  503: 'Redis does not respond',
};

export const Failure = ({ error, retry }: FailureProps) => (
  <div class="placeholder failure" role="alert">
    <p class="placeholder-title">{TITLES[error.status] ?? 'This could not be read'}</p>
    <p class="placeholder-body">
      <Text value={error.message} />
    </p>
    {retry && (
      <button type="button" class="button plain" onClick={retry}>
        Try again
      </button>
    )}
  </div>
);
