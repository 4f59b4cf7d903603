import type { ListScope } from '../api/endpoints.js';
import type { State } from '../api/types.js';
import { Browse } from '../list/browse.js';
import { FilterForm } from '../list/filter-form.js';
import { chosenFilters, type Filters, isSearch } from '../list/filters.js';
import { SearchList } from '../list/search-list.js';
import { href, navigate, paths, useRoute } from '../state/router.js';
import { Text } from '../ui/text.js';
import { GroupsCard } from './queue-summary.js';

interface ListPageProps {
  queue: string;
  state: State;
  /** How many tasks are in the state; undefined: not known. */
  count: number | undefined;
}

/**
 * The tasks in a state, page by page, or the results of a search. Aggregating tasks are listed by
 * group.
 */
export function ListPage({ queue, state, count }: ListPageProps) {
  const { path, query } = useRoute();
  const group = state === 'aggregating' ? query['group'] : undefined;
  if (state === 'aggregating' && group === undefined) return <GroupsCard queue={queue} />;
  const key = state === 'pending' ? query['key'] : undefined;
  const scope: ListScope = { queue, state, group, key };
  if (key !== undefined) {
    return (
      <>
        <p class="crumb">
          <a href={paths.keys(queue)}>Keys</a> / <Text value={key} />
        </p>
        <Browse scope={scope} total={undefined} />
      </>
    );
  }
  const filters = chosenFilters(query);
  const search = (wanted: Filters): void => navigate(path, { ...wanted, group, size: query['size'] });
  return (
    <>
      {group !== undefined && (
        <p class="crumb">
          <a href={href(path)}>Groups</a> / <Text value={group} />
        </p>
      )}
      <FilterForm state={state} filters={filters} onSearch={search} />
      {isSearch(filters) ? (
        <SearchList key={JSON.stringify([scope, filters])} scope={scope} filters={filters} total={count} />
      ) : (
        <Browse scope={scope} total={count} />
      )}
    </>
  );
}
