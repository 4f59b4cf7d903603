import type { Context, Span } from '@opentelemetry/api';
import type { StepOutcomeKind, TaskOutcomeKind } from '../../events/events.js';
import { kindOfError } from '../../redaction/redacted-error.js';
import type { TaskMessage } from '../../wire/message.js';
import type { EnqueueSpan, ProcessSpan, StepSpan } from '../tracing.js';
import { ASYNQ, errorType, MESSAGING, SCOPE } from './attributes.js';

/** The API as a module; only its types are imported. */
export type OpenTelemetryApi = typeof import('@opentelemetry/api');

/** The outcomes that are failures: a task that is revoked, postponed or requeued has not failed. */
export const FAILURES: readonly TaskOutcomeKind[] = ['retry', 'archived', 'lost'];

/** An error of the application's tracer, processor or propagator must not affect a task. */
export function guarded<T>(call: () => T, fallback: T): T {
  try {
    return call();
  } catch {
    return fallback;
  }
}

/** A span of kind producer, with the headers that carry its context. */
export class TracedEnqueueSpan implements EnqueueSpan {
  constructor(
    private readonly api: OpenTelemetryApi,
    private readonly span: Span,
    private readonly carrier: Readonly<Record<string, string>>,
  ) {}

  inject(message: TaskMessage): TaskMessage {
    const carrier = { ...this.carrier };
    const own = message.headers;
    // A tracestate is only valid with its own traceparent.
    if (own && Object.hasOwn(own, 'traceparent')) delete carrier.tracestate;
    if (Object.keys(carrier).length === 0) return message;
    return { ...message, headers: { ...carrier, ...own } };
  }

  end(error?: unknown, failed?: number): void {
    guarded(() => {
      if (failed) this.span.setAttribute(ASYNQ.batchFailed, failed);
      if (error !== undefined) fail(this.api, this.span, error);
    }, undefined);
    guarded(() => this.span.end(), undefined);
  }
}

/** A span of kind consumer, with the context in which the work runs. */
export class TracedProcessSpan implements ProcessSpan {
  private ended = false;

  constructor(
    private readonly api: OpenTelemetryApi,
    private readonly span: Span,
    private readonly context: Context,
    private readonly hidesError: () => boolean = () => false,
  ) {}

  run<T>(work: () => T): T {
    return this.api.context.with(this.context, work);
  }

  end(outcome: TaskOutcomeKind, error?: unknown): void {
    if (this.ended) return;
    this.ended = true;
    guarded(() => {
      this.span.setAttribute(ASYNQ.outcome, outcome);
      if (FAILURES.includes(outcome)) this.fail(error);
    }, undefined);
    guarded(() => this.span.end(), undefined);
  }

  /** Its parent is the active span: that of the attempt, or one that the handler has made in it. */
  startStep(step: { readonly name: string; readonly kind: string }): StepSpan | undefined {
    return guarded(() => {
      const { trace, context } = this.api;
      const active = context.active();
      const around = trace.getSpan(active) ? active : this.context;
      const attributes = { [ASYNQ.step]: step.name, [ASYNQ.stepKind]: step.kind };
      const span = trace.getTracer(SCOPE).startSpan(`step ${baseName(step.name)}`, { attributes }, around);
      return new TracedStepSpan(this.api, span, trace.setSpan(around, span), this.hidesError);
    }, undefined);
  }

  private fail(error: unknown): void {
    failSpan(this.api, this.span, error, this.hidesError());
  }
}

/** The name that is the same in each turn of a loop. */
const baseName = (step: string): string => step.replace(/#\d+$/, '');

class TracedStepSpan implements StepSpan {
  constructor(
    private readonly api: OpenTelemetryApi,
    private readonly span: Span,
    private readonly context: Context,
    private readonly hidesError: () => boolean,
  ) {}

  run<T>(work: () => T): T {
    return this.api.context.with(this.context, work);
  }

  end(outcome: StepOutcomeKind, error?: unknown): void {
    guarded(() => {
      this.span.setAttribute(ASYNQ.stepOutcome, outcome);
      if (outcome === 'failed') failSpan(this.api, this.span, error, this.hidesError());
    }, undefined);
    guarded(() => this.span.end(), undefined);
  }
}

export function failSpan(api: OpenTelemetryApi, span: Span, error: unknown, hidesError: boolean): void {
  if (hidesError) failWithoutText(api, span, error);
  else fail(api, span, error);
}

function failWithoutText({ SpanStatusCode }: OpenTelemetryApi, span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute(MESSAGING.errorType, kindOfError(error));
}

function fail({ SpanStatusCode }: OpenTelemetryApi, span: Span, error: unknown): void {
  const message = guarded(
    () => (error instanceof Error ? error.message : String(error)),
    'an error that cannot be shown',
  );
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  span.setAttribute(MESSAGING.errorType, errorType(error));
  span.recordException(error instanceof Error ? error : { name: 'Error', message });
}
