import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { createModel, type Model } from '../../lib/cli/dash/model.js';
import { queryOf } from '../../lib/cli/dash/query.js';
import { render } from '../../lib/cli/dash/render.js';
import { Backend } from '../../lib/cli/dash/backend.js';
import type { Transition } from '../../lib/cli/dash/transition.js';
import { type Event, update } from '../../lib/cli/dash/update.js';
import { ManualClock } from '../../lib/clock.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';

type WithoutTime<T> = T extends unknown ? Omit<T, 'now'> : never;

/**
 * The dashboard without a terminal and without Redis; everything between keys and screen is real.
 */
export class DashRig {
  readonly clock = new ManualClock(new Date('2030-06-15T12:00:00Z'));
  readonly broker = new MemoryBroker(this.clock);
  readonly inspector = new AsynqInspector(this.broker);
  readonly backend = new Backend(this.inspector);
  model: Model;

  constructor({ columns = 100, rows = 24 } = {}) {
    this.model = createModel({ now: this.clock.now(), columns, rows, where: '127.0.0.1:6379' });
  }

  /** Applies one event. */
  take(event: WithoutTime<Event>): Transition {
    const transition = update(this.model, { ...event, now: this.clock.now() } as Event);
    this.model = transition.model;
    return transition;
  }

  /** Presses keys one by one; each action and read completes before the next key. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      const { request } = this.take({ type: 'key', key });
      if (request) this.take({ type: 'result', result: await this.backend.act(request) });
      await this.read();
    }
  }

  /** Types the characters of the text. */
  type(text: string): Promise<void> {
    return this.press(...text);
  }

  /** Reads until the query does not change any more. */
  async read(): Promise<void> {
    let before: string;
    do {
      const query = queryOf(this.model);
      before = JSON.stringify(query);
      try {
        this.take({ type: 'reply', query, reply: await this.backend.read(query) });
      } catch (error) {
        this.take({ type: 'failure', message: (error as Error).message });
      }
    } while (JSON.stringify(queryOf(this.model)) !== before);
  }

  resize(columns: number, rows: number): Promise<void> {
    this.take({ type: 'resize', columns, rows });
    return this.read();
  }

  /** The screen, without colors. */
  get lines(): string[] {
    return render(this.model, false);
  }

  get text(): string {
    return this.lines.join('\n');
  }

  /** The words of the selected row. */
  get selected(): string | undefined {
    return this.lines.find((line) => line.startsWith('>'))?.slice(2);
  }

  /** The status line: a question, or the result of the last key. */
  get status(): string {
    return this.statusLine.left;
  }

  /** The position in the list. */
  get position(): string {
    return this.statusLine.right;
  }

  private get statusLine(): { left: string; right: string } {
    const line = this.lines.at(-2)!;
    const [first = '', second = ''] = line.trim().split(/ {3,}/);
    return line.startsWith('  ') ? { left: '', right: first } : { left: first, right: second };
  }
}
