import type { ComponentChildren } from 'preact';
import { count, percent } from '../text/format.js';

interface Day {
  /** `YYYY-MM-DD`, UTC. */
  date: string;
  processed: number;
  failed: number;
}

/** The month is shown only where it begins. */
const labelOf = (date: string, index: number): string =>
  index === 0 || date.endsWith('-01') ? date.slice(5) : date.slice(8);

/** More days have no room for a label each. */
const MAX_LABELS = 31;

/** Days as bars, oldest first: succeeded below, failed on top. */
export function Days({ title, days, choice }: { title: string; days: readonly Day[]; choice?: ComponentChildren }) {
  const dense = days.length > MAX_LABELS;
  const top = Math.max(1, ...days.map(({ processed }) => processed));
  const total = days.reduce((sum, { processed }) => sum + processed, 0);
  const failed = days.reduce((sum, day) => sum + day.failed, 0);
  return (
    <section class="card days">
      <header>
        <h2>{title}</h2>
        <p class="faint">
          {count(total)} processed, {count(failed)} failed ({percent(failed, total)})
        </p>
        {choice}
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={title}>
        <table class={dense ? 'bars dense' : 'bars'}>
          <thead class="sr-only">
            <tr>
              <th scope="col">day</th>
              <th scope="col">processed</th>
            </tr>
          </thead>
          <tbody>
            {days.map((day, index) => (
              <tr key={day.date} title={`${day.date}: ${count(day.processed)} processed, ${count(day.failed)} failed`}>
                <th scope="row">
                  <span class="sr-only">{day.date}</span>
                  <span aria-hidden="true">
                    {dense && !day.date.endsWith('-01') ? '\u00a0' : labelOf(day.date, index)}
                  </span>
                </th>
                <td>
                  <span class="sr-only">
                    {count(day.processed)} processed, {count(day.failed)} failed
                  </span>
                  <span class="bar failed" style={{ height: `${(day.failed / top) * 100}%` }} />
                  <span class="bar" style={{ height: `${((day.processed - day.failed) / top) * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
