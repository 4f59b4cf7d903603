import { useRoute } from '../state/router.js';

/** Entries per page. */
export const SIZE = 50;

/** The number of the page in the address, from 1. */
export function usePage(): number {
  const { page } = useRoute().query;
  return page !== undefined && /^[1-9]\d{0,8}$/.test(page) ? Number(page) : 1;
}

interface PagesProps {
  page: number;
  isLast: boolean;
  to: (page: number | undefined) => string;
}

/** Links to the neighbours of a page; nothing when there is one page only. */
export function Pages({ page, isLast, to }: PagesProps) {
  if (page === 1 && isLast) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {page > 1 && (
        <a class="button plain" href={to(page === 2 ? undefined : page - 1)} data-prev title="Key: p">
          Newer
        </a>
      )}
      {!isLast && (
        <a class="button plain" href={to(page + 1)} data-next title="Key: n">
          Older
        </a>
      )}
    </nav>
  );
}
