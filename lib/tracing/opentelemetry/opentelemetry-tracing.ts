import type { Attributes, Context, Link, Span, TracerProvider } from '@opentelemetry/api';
import type { Redactor } from '../../redaction/redactor.js';
import type { TaskMessage } from '../../wire/message.js';
import type { BatchSpan, ProcessSpan, EnqueueSpan, TracedTask, Tracing } from '../tracing.js';
import { ASYNQ, MESSAGING, operation, SCOPE, taskAttributes } from './attributes.js';
import { guarded, type OpenTelemetryApi, TracedProcessSpan, TracedEnqueueSpan } from './traced.js';
import { TracedBatchSpan } from './traced-batch.js';

type Headers = Readonly<Record<string, string>>;

/** The content of a span of kind consumer. */
interface Work {
  readonly attributes: Attributes;
  readonly links?: Link[];
  /** The tasks of the work. */
  readonly of: readonly { readonly type: string; readonly queue: string }[];
}

/**
 * Creates spans by OpenTelemetry's conventions for messaging, and carries the context of the trace
 * in the headers of tasks, in the format of the application's propagator (W3C's by default). While
 * no SDK is registered, each call only checks for one.
 */
export class OpenTelemetryTracing implements Tracing {
  private readonly noProvider: TracerProvider;
  private active = false;

  constructor(
    private readonly api: OpenTelemetryApi,
    private readonly onActive: () => void,
    private readonly redactor?: Redactor,
  ) {
    this.noProvider = new api.ProxyTracerProvider().getDelegate();
    this.isActive();
  }

  startEnqueue(message: TaskMessage): EnqueueSpan | undefined {
    return this.isActive()
      ? guarded(() => this.enqueueSpanOf(message, this.api.context.active()), undefined)
      : undefined;
  }

  startScheduledEnqueue(message: TaskMessage): EnqueueSpan | undefined {
    return this.isActive() ? guarded(() => this.enqueueSpanOf(message, this.api.ROOT_CONTEXT), undefined) : undefined;
  }

  startEnqueueMany(count: number | undefined, queue: string | undefined): EnqueueSpan | undefined {
    if (count === 0 || !this.isActive()) return undefined;
    const attributes = count === undefined ? {} : { [MESSAGING.batchCount]: count };
    return guarded(() => this.startProducerSpan(queue, attributes, this.api.context.active()), undefined);
  }

  startProcess(task: TracedTask): ProcessSpan | undefined {
    return this.isActive() ? guarded(() => this.processSpanOf(task), undefined) : undefined;
  }

  startProcessBatch(tasks: readonly TracedTask[]): BatchSpan | undefined {
    if (!this.isActive()) return undefined;
    return guarded(() => {
      const links = tasks.flatMap(({ headers }) => this.linkTo(headers));
      const { type, queue } = tasks[0]!;
      const attributes = { [MESSAGING.batchCount]: tasks.length, [ASYNQ.type]: type };
      const destination = tasks.every((task) => task.queue === queue) ? queue : undefined;
      const { api } = this;
      const span = this.startSpan(destination, { attributes, links, of: tasks }, api.ROOT_CONTEXT);
      for (const task of tasks) this.recordWait(task, this.extract(task.headers), span);
      const hidesErrors = this.hidesErrorsOf(tasks);
      return new TracedBatchSpan(api, span, api.trace.setSpan(api.ROOT_CONTEXT, span), tasks.length, hidesErrors);
    }, undefined);
  }

  startAggregate(queue: string, group: string, members: readonly TaskMessage[]): ProcessSpan | undefined {
    if (!this.isActive()) return undefined;
    return guarded(() => {
      const links = members.flatMap(({ headers = {} }) => this.linkTo(headers));
      const attributes = { [MESSAGING.batchCount]: members.length, [ASYNQ.group]: group };
      return this.startConsumerSpan(queue, { attributes, links, of: members }, this.api.ROOT_CONTEXT);
    }, undefined);
  }

  /** Whether an SDK or a propagator is registered. Once it is, this stays true. */
  private isActive(): boolean {
    if (this.active) return true;
    const { trace, propagation, ProxyTracerProvider } = this.api;
    const provider = trace.getTracerProvider();
    const isUnset = provider instanceof ProxyTracerProvider && provider.getDelegate() === this.noProvider;
    if (isUnset && propagation.fields().length === 0) return false;
    this.active = true;
    this.onActive();
    return true;
  }

  private enqueueSpanOf(message: TaskMessage, around: Context): EnqueueSpan {
    const group = message.groupKey === '' ? {} : { [ASYNQ.group]: message.groupKey };
    return this.startProducerSpan(message.queue, { ...taskAttributes(message), ...group }, around);
  }

  private startProducerSpan(queue: string | undefined, attributes: Attributes, around: Context): EnqueueSpan {
    const { api } = this;
    const span = api.trace
      .getTracer(SCOPE)
      .startSpan(
        queue === undefined ? 'send' : `send ${queue}`,
        { kind: api.SpanKind.PRODUCER, attributes: { ...operation('send', queue), ...attributes } },
        around,
      );
    const carrier: Record<string, string> = {};
    // Some propagators set numbers; a header is text.
    const setter = { set: (to: typeof carrier, key: string, value: unknown) => void (to[key] = String(value)) };
    guarded(() => api.propagation.inject(api.trace.setSpan(around, span), carrier, setter), undefined);
    return new TracedEnqueueSpan(api, span, carrier);
  }

  private processSpanOf(task: TracedTask): ProcessSpan {
    const sender = this.extract(task.headers);
    const attributes = {
      ...taskAttributes(task),
      [ASYNQ.retried]: task.retried,
      [ASYNQ.maxRetry]: task.maxRetry,
      ...(task.waited === undefined ? {} : { [ASYNQ.waited]: task.waited }),
    };
    return this.startConsumerSpan(task.queue, { attributes, of: [task] }, sender, (span) =>
      this.recordWait(task, sender, span),
    );
  }

  /** Records the wait as a sibling before the work, or as its child if the sender has no trace. */
  private recordWait({ queue, id, type, waited, startedAt }: TracedTask, sender: Context, work: Span): void {
    const { trace } = this.api;
    if (waited === undefined) return;
    const attributes = {
      [MESSAGING.system]: 'asynq',
      [MESSAGING.destination]: queue,
      [MESSAGING.messageId]: id,
      [ASYNQ.type]: type,
    };
    const parent = trace.getSpanContext(sender) ? sender : trace.setSpan(sender, work);
    const startTime = new Date(startedAt - waited);
    trace.getTracer(SCOPE).startSpan(`wait ${queue}`, { attributes, startTime }, parent).end(new Date(startedAt));
  }

  private startConsumerSpan(
    queue: string,
    work: Work,
    parent: Context,
    onStart: (span: Span) => void = () => {},
  ): ProcessSpan {
    const { api } = this;
    const span = this.startSpan(queue, work, parent);
    onStart(span);
    return new TracedProcessSpan(api, span, api.trace.setSpan(parent, span), this.hidesErrorsOf(work.of));
  }

  private startSpan(queue: string | undefined, { attributes, links = [] }: Work, parent: Context): Span {
    const { trace, SpanKind } = this.api;
    return trace
      .getTracer(SCOPE)
      .startSpan(
        queue === undefined ? 'process' : `process ${queue}`,
        { kind: SpanKind.CONSUMER, links, attributes: { ...operation('process', queue), ...attributes } },
        parent,
      );
  }

  /** Called when there is an error. */
  private hidesErrorsOf(tasks: Work['of']): (() => boolean) | undefined {
    const { redactor } = this;
    return redactor && (() => tasks.some((task) => redactor.hidesErrors(task)));
  }

  /** Headers may contain anything: those that cannot be read are no context. */
  private extract(headers: Headers): Context {
    const { propagation, ROOT_CONTEXT } = this.api;
    return guarded(() => propagation.extract(ROOT_CONTEXT, headers), ROOT_CONTEXT);
  }

  private linkTo(headers: Headers): Link[] {
    const context = this.api.trace.getSpanContext(this.extract(headers));
    return context ? [{ context }] : [];
  }
}
