import type { Context, Span } from '@opentelemetry/api';
import type { TaskOutcomeKind } from '../../events/events.js';
import type { BatchSpan, ProcessSpan } from '../tracing.js';
import { ASYNQ } from './attributes.js';
import { failSpan, FAILURES, guarded, type OpenTelemetryApi } from './traced.js';

/** One span for all tasks of a call: it ends with the last of them, and is failed by the first that fails. */
export class TracedBatchSpan implements BatchSpan {
  readonly ofTasks: readonly ProcessSpan[];
  private failed = 0;

  constructor(
    private readonly api: OpenTelemetryApi,
    private readonly span: Span,
    private readonly context: Context,
    private left: number,
    private readonly hidesError: () => boolean = () => false,
  ) {
    this.ofTasks = Array.from({ length: left }, () => this.partOf());
  }

  run<T>(work: () => T): T {
    return this.api.context.with(this.context, work);
  }

  private partOf(): ProcessSpan {
    let ended = false;
    return {
      run: (work) => this.run(work),
      startStep: () => undefined, // a batch handler has no steps
      end: (outcome, error) => {
        if (!ended) this.endOne(outcome, error);
        ended = true;
      },
    };
  }

  private endOne(outcome: TaskOutcomeKind, error: unknown): void {
    if (FAILURES.includes(outcome)) {
      this.failed += 1;
      if (this.failed === 1) guarded(() => failSpan(this.api, this.span, error, this.hidesError()), undefined);
    }
    this.left -= 1;
    if (this.left > 0) return;
    guarded(() => this.failed > 0 && this.span.setAttribute(ASYNQ.batchFailed, this.failed), undefined);
    guarded(() => this.span.end(), undefined);
  }
}
