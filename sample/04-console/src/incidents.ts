import { Controller, Get, Injectable, Sse } from '@nestjs/common';
import { AsynqTaskEvents, OnTaskEvent, type TaskEvent } from 'nestjs-asynq';
import { map, type Observable } from 'rxjs';

interface Incident {
  readonly at: Date;
  readonly type: string;
  readonly id: string;
  readonly error: string;
}

/** The latest archived tasks. A real application alerts the engineer on call. */
@Injectable()
export class Incidents {
  private readonly recent: Incident[] = [];

  @OnTaskEvent('archived')
  remember({ task, error }: TaskEvent<'archived'>): void {
    this.recent.unshift({ at: new Date(), type: task.type, id: task.id, error: String(error) });
    this.recent.length = Math.min(this.recent.length, 50);
  }

  list(): readonly Incident[] {
    return this.recent;
  }
}

@Controller()
export class IncidentsController {
  constructor(
    private readonly incidents: Incidents,
    private readonly events: AsynqTaskEvents,
  ) {}

  @Get('incidents')
  list(): readonly Incident[] {
    return this.incidents.list();
  }

  /** Every failed attempt of every process, as it happens: `curl -N http://…/failures`. */
  @Sse('failures')
  failures(): Observable<{ data: object }> {
    return this.events.fleet('failed').pipe(
      map(({ at, process, task, outcome, error }) => ({
        data: { at, process, ...task, outcome, error: error?.message },
      })),
    );
  }
}
