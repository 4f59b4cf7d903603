import type { Clock, ClockTimer } from '../../clock.js';
import { explain } from '../failures.js';
import type { Terminal } from '../terminal.js';
import type { ActionRequest } from './actions.js';
import { createModel, type Model, viewOf } from './model.js';
import { isRefreshed, keyOf, type Query, queryOf } from './query.js';
import { render } from './render.js';
import { Screen } from './screen.js';
import type { Backend } from './backend.js';
import type { Transition } from './transition.js';
import { type Event, update } from './update.js';

type WithoutTime<T> = T extends unknown ? Omit<T, 'now'> : never;

/** Milliseconds that an empty view may wait for its data before it is shown as empty. */
const EMPTY_VIEW_DELAY_MS = 80;
const TICK_INTERVAL_MS = 1000;

export interface DashboardOptions {
  readonly terminal: Terminal;
  readonly backend: Pick<Backend, 'read' | 'act'>;
  /** Milliseconds between two readings. */
  readonly refresh: number;
  /** Redis, for the header. */
  readonly where: string;
}

/** Holds model, screen and backend together. One thing is read at a time, and only what is on the screen. */
export class Dashboard {
  private readonly screen: Screen;
  private readonly clock: Clock;
  private readonly timers = new Map<'refresh' | 'tick' | 'draw', ClockTimer>();
  private model: Model;
  /** What is being read. */
  private reading: Query | undefined;
  /** What was read, or tried to be, the last time; `undefined` when it has to be read again. */
  private lastRead: string | undefined;
  private isOver = false;
  private readonly ended: Promise<'quit' | 'interrupt'>;
  private end!: (how: 'quit' | 'interrupt') => void;
  private crash!: (error: unknown) => void;

  /** @throws CommandLineError where there is no terminal */
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

  /** Shows it until somebody has had enough of it. */
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
    this.readOn();
    this.drawSoon();
  }

  private async perform(request: ActionRequest): Promise<void> {
    const result = await this.options.backend.act(request);
    this.dispatch({ type: 'result', result });
  }

  /** Reads what is on the screen, when it is not what was read last. */
  private readOn(): void {
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
    this.readOn();
  }

  /** A view without data waits for it a little: what is there for a few milliseconds only flickers. */
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
