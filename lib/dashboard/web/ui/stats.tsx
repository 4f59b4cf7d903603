import { Text } from './text.js';

/** Names with their numbers, in one line where there is room. */
export const Stats = ({ stats }: { stats: readonly (readonly [name: string, value: string])[] }) => (
  <dl class="stats">
    {stats.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd class="number">
          <Text value={value} />
        </dd>
      </div>
    ))}
  </dl>
);
