import { Controller, Get, Injectable, Sse } from '@nestjs/common';
import { AsynqTaskEvents, OnTaskEvent, type TaskEvent } from 'nestjs-asynq';
import { map, type Observable } from 'rxjs';

interface Incident {
  readonly at: Date;
  readonly type: string;
  readonly id: string;
  readonly outcome: string;
  readonly error: string;
}

const toIncident = ({ task, outcome, error }: TaskEvent<'failed'>): Incident => ({
  at: new Date(),
  type: task.type,
  id: task.id,
  outcome,
  error: String(error),
});

/** What was given up lately: in real life a page to whoever is on call. */
@Injectable()
export class Incidents {
  private readonly recent: Incident[] = [];

  @OnTaskEvent('archived')
  remember(event: TaskEvent<'archived'>): void {
    this.recent.unshift(toIncident({ ...event, event: 'failed' }));
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

  /** Every failed attempt, as it happens: `curl -N http://…/failures`. */
  @Sse('failures')
  failures(): Observable<{ data: Incident }> {
    return this.events.observe('failed').pipe(map((event) => ({ data: toIncident(event) })));
  }
}
