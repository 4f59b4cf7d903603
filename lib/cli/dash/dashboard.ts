import type { Clock, ClockTimer } from '../../clock.js';
import { explain } from '../output/failures.js';
import type { Terminal } from '../output/terminal.js';
import type { ActionRequest } from './actions.js';
import { createModel, type Model, viewOf } from './model.js';
import { isRefreshed, keyOf, type Query, queryOf } from './query.js';
import { render } from './render.js';
import { Screen } from './screen.js';
import type { Backend } from './backend.js';
import type { Transition } from './transition.js';
import { type Event, update } from './update.js';

type WithoutTime<T> = T extends unknown ? Omit<T, 'now'> : never;

/** How long a new view waits for its data before it is drawn empty. */
const EMPTY_VIEW_DELAY_MS = 80;
const TICK_INTERVAL_MS = 1000;

export interface DashboardOptions {
  readonly terminal: Terminal;
  readonly backend: Pick<Backend, 'read' | 'act'>;
  /** Milliseconds between two reads. */
  readonly refresh: number;
  /** The address of Redis, for the header. */
  readonly where: string;
}

/** Connects model, screen and backend. It reads only what is on the screen, and one query at a time. */
export class Dashboard {
  private readonly screen: Screen;
  private readonly clock: Clock;
  private readonly timers = new Map<'refresh' | 'tick' | 'draw', ClockTimer>();
  private model: Model;
  /** The query that is running. */
  private reading: Query | undefined;
  /** The key of the last query, successful or not; `undefined` if it must be repeated. */
  private lastRead: string | undefined;
  private isOver = false;
  private readonly ended: Promise<'quit' | 'interrupt'>;
  private end!: (how: 'quit' | 'interrupt') => void;
  private crash!: (error: unknown) => void;

  /** @throws CommandLineError without a terminal */
  constructor(private readonly options: DashboardOptions) {
    const { terminal, where } = options;
    this.clock = terminal.clock;
    this.screen = new Screen(terminal, {
      onKey: (key) => this.dispatch({ type: 'key', key }),
      onResize: () => this.dispatch({ type: 'resize', columns: this.screen.columns, rows: this.screen.rows }),
      onGone: () => this.end('quit'),
    });
    const { columns, rows } = this.screen;
    this.model = createModel({ now: this.clock.now(), columns, rows, where });
    this.ended = new Promise((resolve, reject) => {
      this.end = resolve;
      this.crash = reject;
    });
  }

  /** Shows the dashboard until the user quits it. */
  async run(): Promise<'quit' | 'interrupt'> {
    this.screen.open();
    try {
      this.tick();
      return await this.ended;
    } finally {
      this.isOver = true;
      for (const timer of this.timers.values()) timer.cancel();
      this.screen.close();
    }
  }

  private tick(): void {
    this.dispatch({ type: 'tick' });
    this.after('tick', TICK_INTERVAL_MS, () => this.tick());
  }

  private dispatch(event: WithoutTime<Event>): void {
    if (this.isOver) return;
    try {
      const transition = update(this.model, { ...event, now: this.clock.now() } as Event);
      this.model = transition.model;
      this.follow(transition);
    } catch (error) {
      this.crash(error);
    }
  }

  private follow({ request, reload, end }: Transition): void {
    if (end) return this.end(end);
    if (request) void this.perform(request);
    if (reload) this.lastRead = undefined;
    this.readIfNeeded();
    this.drawSoon();
  }

  private async perform(request: ActionRequest): Promise<void> {
    const result = await this.options.backend.act(request);
    this.dispatch({ type: 'result', result });
  }

  /** Reads what is on the screen, unless it was read last. */
  private readIfNeeded(): void {
    const query = queryOf(this.model);
    if (this.reading || keyOf(query) === this.lastRead) return;
    this.reading = query;
    this.lastRead = keyOf(query);
    this.timers.get('refresh')?.cancel();
    void this.read(query);
  }

  private async read(query: Query): Promise<void> {
    const event = await this.options.backend.read(query).then(
      (reply) => ({ type: 'reply', query, reply }) as const,
      (error: Error) => ({ type: 'failure', message: explain(error) }) as const,
    );
    this.reading = undefined;
    if (this.isOver) return;
    this.after('refresh', this.options.refresh, () => this.refresh());
    this.dispatch(event);
  }

  private refresh(): void {
    if (isRefreshed(queryOf(this.model))) this.lastRead = undefined;
    this.readIfNeeded();
  }

  /** A view without data is drawn a little later: an empty screen for a few milliseconds flickers. */
  private drawSoon(): void {
    if (viewOf(this.model).readAt !== undefined || !this.reading) return this.draw();
    if (!this.timers.has('draw')) this.after('draw', EMPTY_VIEW_DELAY_MS, () => this.draw());
  }

  private draw(): void {
    this.timers.get('draw')?.cancel();
    this.timers.delete('draw');
    this.screen.draw(render(this.model, this.screen.colors));
  }

  private after(name: 'refresh' | 'tick' | 'draw', milliseconds: number, callback: () => void): void {
    this.timers.get(name)?.cancel();
    this.timers.set(name, this.clock.after(milliseconds, callback));
  }
}
